"""The benchmark of hostile requests measures them, and fails for what grows or stalls."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command

from benchmarks.__main__ import command
from benchmarks.hostile.command import PATIENCE_S, Row


@pytest.mark.slow
def test_a_row_has_statuses_times_and_memory(capfd):
    call_command(command("hostile"), only="an unknown path of", rounds=1)
    [row] = [line for line in capfd.readouterr().out.splitlines() if "path of" in line]
    assert re.fullmatch(
        r"\| an unknown path of the API \| 404 \| .* \| [\d.]+ \| \d+ \| \d+, \d+ \|",
        row,
    )


def test_growth_stalls_and_crashes_are_faults():
    row = Row("an example")
    row.cpu, row.statuses = [0.1, 0.4, 1.6], [200, 200, 0]
    row.others.longest["chat"] = PATIENCE_S
    assert row.exponent == pytest.approx(2)
    assert len(row.faults()) == 3


def test_growth_is_seen_although_the_largest_request_is_refused():
    row = Row("an example")
    row.cpu, row.statuses = [0.2, 0.8, 0.0], [200, 200, 413]
    assert row.faults() == ["an example: grows as n^2.0"]


def test_requests_in_proportion_to_their_size_are_no_fault():
    row = Row("an example")
    row.cpu, row.statuses = [0.1, 0.2, 0.4], [200, 400, 413]
    assert row.faults() == []
