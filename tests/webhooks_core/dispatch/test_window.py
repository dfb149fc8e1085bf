"""How much may be claimed ahead for one receiver."""

from __future__ import annotations

import pytest

from webhooks_core.dispatch.queues import QueueState
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.spec("webhooks_core", "a window for every endpoint")


@pytest.mark.parametrize(
    ("duration_ms", "windows"),
    [
        (0, [16, 32, 64, 128, 128]),  # quicker than can be measured
        (1, [16, 32, 64, 128, 128]),
        (20, [16, 32, 40, 40]),  # four at once, a fifth of a second
        (40, [16, 20, 20]),
        (100, [8, 8]),
        (5000, [8, 8]),  # never less than it was opened to
    ],
)
def test_a_window_grows_to_what_a_receiver_takes_in_a_fifth_of_a_second(
    duration_ms, windows
):
    queue, endpoint = QueueState(1, window=8), Endpoint(max_in_flight=4)
    for window in windows:
        queue.widen(endpoint, duration_ms)
        assert queue.window == window
