"""How a rate of the API is written in words."""

from __future__ import annotations

import pytest

from recording.throttles import AccountThrottle


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("60/hour", "60 per hour"),
        ("2/s", "2 per second"),
        ("5/min", "5 per minute"),
        ("9/day", "9 per day"),
    ],
)
def test_a_rate_is_written_in_words(settings, rate, words):
    settings.RECORDING_RATES = {"create": rate}
    assert AccountThrottle("create").limit.endswith(f"an account may create {words}")
