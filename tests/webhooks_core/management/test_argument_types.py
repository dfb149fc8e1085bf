"""A number that a command cannot work with is refused before anything begins."""

from argparse import ArgumentTypeError

import pytest
from django.core.management import CommandError, call_command

from webhooks_core.management.argument_types import integer_between, seconds


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("10", 10), ("007", 7)])
def test_whole_numbers_within_bounds_are_read(text, number):
    assert integer_between(1, 10)(text) == number


@pytest.mark.parametrize("text", ["0", "11", "-1", "", "x", "1.0", "²", "9" * 5000])
def test_whole_numbers_beyond_bounds_are_refused(text):
    with pytest.raises(ArgumentTypeError, match=r"from 1 to 10$"):
        integer_between(1, 10)(text)


@pytest.mark.parametrize("text", ["-1", "3601", "nan", "inf", "", "x"])
def test_seconds_beyond_bounds_are_refused(text):
    assert seconds(0, 3600)("0.5") == 0.5
    with pytest.raises(ArgumentTypeError, match=r"from 0 to 3600$"):
        seconds(0, 3600)(text)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("webhooks_dispatch", ["--linger=-1"]),
        ("webhooks_dispatch", ["--linger=nan"]),
    ],
)
def test_a_command_refuses_a_number_that_it_cannot_work_with(command, options):
    with pytest.raises(CommandError, match="is not a"):
        call_command(command, *options)
