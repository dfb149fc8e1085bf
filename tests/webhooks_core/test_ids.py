"""Public ids: shape, order, uniqueness."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from webhooks_core import ids


@pytest.mark.parametrize("prefix", ["ep_", "dlv_", "evt_", "whsub_", ""])
def test_an_id_is_its_prefix_and_26_characters(prefix):
    made = ids.make(prefix)
    assert re.fullmatch(prefix + "[0-9a-v]{26}", made)


def test_ids_sort_by_the_microsecond_they_were_made_in():
    start = datetime(2026, 11, 21, tzinfo=UTC)
    steps = [timedelta(microseconds=1), timedelta(seconds=1), timedelta(days=9000)]
    made = []
    for step in [timedelta(0), *steps]:
        start += step
        with time_machine.travel(start, tick=False):
            made.append(ids.make("evt_"))
    assert made == sorted(made)


@pytest.mark.parametrize("year", [1970, 2026, 2300, 4000])
def test_the_time_fits_for_two_thousand_years(year):
    with time_machine.travel(datetime(year, 1, 1, tzinfo=UTC), tick=False):
        assert len(ids.make("")) == ids.LENGTH
        earlier = ids.make("")
    with time_machine.travel(datetime(year, 1, 2, tzinfo=UTC), tick=False):
        assert ids.make("") > earlier


def test_ids_of_one_moment_differ_and_their_end_tells_nothing():
    with time_machine.travel(datetime(2026, 11, 21, tzinfo=UTC), tick=False):
        made = [ids.make("") for _ in range(2000)]
    assert len({it[-14:] for it in made}) == 2000
    assert len({it[:11] for it in made}) == 1


def test_threads_make_different_ids():
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: ids.make("evt_"), range(4000)))
    assert len(set(made)) == 4000
