"""How much may be claimed ahead for one receiver."""

import pytest
from django.utils import timezone

from webhooks_core.dispatch.queues import QueueState
from webhooks_core.models import Endpoint
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import AttemptResult


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
    queue, endpoint, now = QueueState(1), Endpoint(max_in_flight=4), timezone.now()
    assert queue.room(endpoint) == 8
    queue.next_check_at = now
    for window in windows:
        result = AttemptResult(1, 1, now, Outcome.OK, 204, duration_ms=duration_ms)
        queue.adapt(result, endpoint, now)
        assert queue.room(endpoint) == window
