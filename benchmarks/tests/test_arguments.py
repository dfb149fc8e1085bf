"""Numbers and options that a benchmark cannot work with are refused before anything starts."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from benchmarks.__main__ import COMMANDS, command, main


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("auth", "--requests=0"),
        ("catalog", "--books=-5"),
        ("search", "--times=0"),
        ("chat", "--seconds=0"),
        ("deliveries", "--rounds=0"),
        ("deliveries", "--dispatchers=0"),
        ("hostile", "--rounds=0"),
        ("scale", "--deliveries=0"),
    ],
)
def test_a_number_that_nothing_can_work_with_is_refused(name, option):
    with pytest.raises(CommandError, match="is not a"):
        call_command(command(name), option)


def test_an_option_says_what_it_lacks():
    with pytest.raises(CommandError, match="--serve needs --port"):
        call_command(command("catalog"), "--serve=signpost")


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["--help"]])
def test_an_unknown_benchmark_is_told_which_there_are(arguments):
    with pytest.raises(SystemExit, match="|".join(COMMANDS)):
        main(arguments)
