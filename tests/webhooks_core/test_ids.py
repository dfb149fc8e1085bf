"""Public public_ids (shape, order, uniqueness), and times as the APIs write them."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tests.clock import travel
from webhooks_core import ids, times


@pytest.mark.parametrize("prefix", ["ep_", "dlv_", "evt_", "whsub_", ""])
def test_an_id_is_its_prefix_and_26_characters(prefix):
    public_ids = ids.public_id(prefix)
    assert re.fullmatch(prefix + "[0-9a-v]{26}", public_ids)


def test_ids_sort_by_the_microsecond_they_were_made_in():
    start = datetime(2026, 11, 21, tzinfo=UTC)
    steps = [timedelta(microseconds=1), timedelta(seconds=1), timedelta(days=9000)]
    public_ids = []
    for step in [timedelta(0), *steps]:
        start += step
        with travel(start, tick=False):
            public_ids.append(ids.public_id("evt_"))
    assert public_ids == sorted(public_ids)


def test_ids_of_one_moment_differ_and_their_end_is_random():
    with travel(datetime(2026, 11, 21, tzinfo=UTC), tick=False):
        public_ids = [ids.public_id("") for _ in range(2000)]
    assert len({public_id[-14:] for public_id in public_ids}) == 2000
    assert len({public_id[:11] for public_id in public_ids}) == 1


def test_a_time_is_written_in_utc_with_microseconds():
    zone = timezone(timedelta(hours=2))
    time = datetime(2026, 11, 21, 5, 20, tzinfo=zone)
    assert times.iso(time) == "2026-11-21T03:20:00.000000Z"
