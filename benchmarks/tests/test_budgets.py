"""The benchmark of budgets lets processes spend one together, and prints by how much too much."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command

from benchmarks.__main__ import command

pytestmark = pytest.mark.slow


def test_all_processes_together_spend_one_budget(capfd):
    call_command(command("budgets"), "--processes=2", "--rate=20", "--spent-after=3")
    output = capfd.readouterr().out
    row = re.search(r"\| SQLite alone \|((?: \d+ \|){5}) [\d.]+ s \|", output)
    assert row
    limit, admitted, over, in_flight, others = map(int, re.findall(r"\d+", row[1]))
    assert (limit, in_flight, others) == (120, 2, 20)
    assert admitted == limit + over
    # Not a budget for each. A process that stalls for a second sends more at once later.
    assert over < limit
