"""The benchmark of MCP times the other requests of an instance without and beside its clients."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command

from benchmarks.__main__ import command

pytestmark = pytest.mark.slow


def test_ratios_are_printed(capfd):
    call_command(command("mcp"), clients=3, seconds=1, rounds=1)
    output = capfd.readouterr().out
    for name in ("chat request", "publishing request", "delivery"):
        assert re.search(rf"\| {name}, p95 \| [\d.,]+ \| [\d.,]+ \| [\d.]+ \|", output)
    assert (
        len(re.findall(r"^\| \w+_recordings|^\| get_transcript", output, re.MULTILINE))
        == 3
    )
