"""Each benchmark runs: a short one, without peers."""

import sys

import pytest

from tests.running import ROOT, environment
from tests.tools import output_of


@pytest.mark.parametrize(
    ("arguments", "row"),
    [
        (["deliveries", "--quick", "--only", "speed"], "Signpost"),
        (
            ["chat", "--seconds=0.1", "--rounds=1", "--held=5", "--only=signpost"],
            "signpost",
        ),
    ],
)
def test_a_benchmark_prints_its_tables(arguments, row):
    output = output_of(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, env=environment()
    )
    assert f"| {row}" in output
