from datetime import UTC, datetime, timedelta, timezone
from typing import get_args

import pytest

from gateway.chat.metering.windows import end_of, start_of
from gateway.configuration.shapes import Window

AT = datetime(2026, 11, 25, 14, 37, 59, 999_999, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("window", "start", "end"),
    [
        ("minute", "2026-11-25T14:37Z", "2026-11-25T14:38Z"),
        ("hour", "2026-11-25T14:00Z", "2026-11-25T15:00Z"),
        ("day", "2026-11-25T00:00Z", "2026-11-26T00:00Z"),
        ("week", "2026-11-23T00:00Z", "2026-11-30T00:00Z"),
        ("month", "2026-11-01T00:00Z", "2026-12-01T00:00Z"),
    ],
)
def test_a_window_is_of_the_calendar(window, start, end):
    assert start_of(window, AT) == datetime.fromisoformat(start)
    assert end_of(window, start_of(window, AT)) == datetime.fromisoformat(end)


@pytest.mark.parametrize("window", get_args(Window))
@pytest.mark.parametrize("day", [1, 28, 29, 31])
@pytest.mark.parametrize("month", [1, 12])
def test_the_next_window_begins_where_one_ends(window, month, day):
    at = datetime(2028, month, day, 23, 59, 59, tzinfo=UTC)
    start = start_of(window, at)
    end = end_of(window, start)
    assert start <= at < end
    assert start_of(window, end) == end
    assert start_of(window, end - timedelta(microseconds=1)) == start


def test_a_window_is_in_utc():
    at = datetime(2026, 12, 1, 3, tzinfo=timezone(timedelta(hours=5)))
    assert start_of("month", at) == datetime(2026, 11, 1, tzinfo=UTC)
