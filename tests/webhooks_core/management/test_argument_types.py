"""A number that a command cannot work with is refused before anything begins."""

from argparse import ArgumentTypeError

import pytest
from django.core.management import CommandError, call_command

from webhooks_core.management.command_line import integer_between


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("10", 10), ("007", 7)])
def test_whole_numbers_within_bounds_are_read(text, number):
    assert integer_between(1, 10)(text) == number


@pytest.mark.parametrize("text", ["0", "11", "-1", "", "x", "1.0", "²", "9" * 5000])
def test_whole_numbers_beyond_bounds_are_refused(text):
    with pytest.raises(ArgumentTypeError, match=r"from 1 to 10$"):
        integer_between(1, 10)(text)


def test_a_command_refuses_a_number_that_it_cannot_work_with():
    with pytest.raises(CommandError, match="is not a"):
        call_command("webhooks_rotate_secret", "ep_1", "--overlap=-1")
