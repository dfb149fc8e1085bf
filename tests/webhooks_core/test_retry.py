"""When to try again: never sooner than the schedule, never later than it allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks_core.profiles import RetryPolicy

seconds = st.floats(0.001, 86_400)


@pytest.mark.spec("gateway", "exponential backoff capped at 30 seconds")
@pytest.mark.parametrize(
    ("max_attempts", "delays"),
    [
        (1, ()),
        (2, (0.5,)),
        (3, (0.5, 1.0)),
        (9, (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0)),
    ],
)
def test_exponential_backoff_doubles_up_to_the_cap(max_attempts, delays):
    policy = RetryPolicy.exponential(base=0.5, cap=30.0, max_attempts=max_attempts)
    assert (policy.delays, policy.retry_after_cap) == (delays, 30.0)
    assert policy.max_attempts == max_attempts
    pauses = [policy.delay_after(n) for n in range(1, max_attempts + 1)]
    assert pauses == [*delays, None]


def test_a_thousand_attempts_overflow_nothing():
    policy = RetryPolicy.exponential(base=0.5, cap=30.0, max_attempts=2000)
    assert policy.delay_after(1999) == 30.0
    assert policy.delay_after(2000) is None


@pytest.mark.spec("recording", "Retry-After is not part of the schedule")
@given(
    delays=st.lists(seconds, min_size=1, max_size=8),
    jitter=st.floats(0, 1),
    attempts=st.integers(1, 12),
    asked=st.none() | st.floats(0, 1e6),
)
def test_a_pause_is_never_shorter_than_planned_nor_longer_than_jitter_allows(
    delays, jitter, attempts, asked
):
    policy = RetryPolicy(tuple(delays), jitter=jitter)
    pause = policy.delay_after(attempts, retry_after=asked)
    if attempts > len(delays):
        assert pause is None
    else:
        assert pause is not None
        planned = delays[attempts - 1]
        assert planned <= pause <= planned * (1 + jitter) * (1 + 1e-9)


@given(
    delays=st.lists(seconds, min_size=1, max_size=8),
    cap=seconds,
    asked=st.floats(0, 1e6),
    data=st.data(),
)
def test_retry_after_is_honoured_between_the_pause_its_double_and_the_cap(
    delays, cap, asked, data
):
    policy = RetryPolicy(tuple(delays), retry_after_cap=cap)
    attempts = data.draw(st.integers(1, len(delays)))
    planned = delays[attempts - 1]
    pause = policy.delay_after(attempts, retry_after=asked)
    assert pause is not None
    assert planned <= pause <= max(planned, min(2 * planned, cap))
    if planned <= asked <= min(2 * planned, cap):
        assert pause == asked
