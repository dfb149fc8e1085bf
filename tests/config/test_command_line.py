"""The usage of every command names its own arguments, in an error and with --help."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import get_commands
from django.core.management.base import DjangoHelpFormatter

from config.command_line import CommandLine
from tests.docs.test_command_answers import ours
from tests.docs.test_commands import options

COMMON = DjangoHelpFormatter.show_last | {"-v"}


def refusal(command: str, *arguments: str) -> str:
    """Run a command with wrong arguments; return what it writes to standard error."""
    done = subprocess.run(
        [sys.executable, "manage.py", command, *arguments],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def words(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))


def usage_of(output: str) -> str:
    return re.split(r"\n\n|\nmanage\.py ", output, maxsplit=1)[0]


def test_the_walk_below_includes_every_command_of_ours():
    assert ours()
    assert ours() <= get_commands().keys()


@pytest.mark.parametrize("command", sorted(get_commands()))
def test_an_error_shows_no_option_of_every_command(command, capsys):
    utility = CommandLine(["manage.py", command])
    with pytest.raises(SystemExit, match=r"^2$"):
        utility.fetch_command(command).run_from_argv(
            ["manage.py", command, "--verbosity=high"]
        )
    output = capsys.readouterr().err
    assert output.startswith(f"usage: manage.py {command}")
    assert "error: argument -v/--verbosity: " in output
    assert words(usage_of(output)).isdisjoint(COMMON)


@pytest.mark.parametrize("command", sorted(ours()))
def test_help_lists_own_options_first_and_the_others_apart(command, capsys):
    utility = CommandLine(["manage.py", command])
    utility.fetch_command(command).print_help("manage.py", command)
    own, common = capsys.readouterr().out.split("\noptions of every command:\n")
    assert words(own).isdisjoint(COMMON)
    assert words(common) >= COMMON - {"--skip-checks"}
    assert words(usage_of(own)) - {"-h"} <= options(command)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("--bogus --delivery dlv_1", "unrecognized arguments: --bogus"),
        ("", "one of the arguments --delivery --endpoint is required"),
        ("--endpoint ep_1 --per-second many", "argument --per-second: 'many' is not"),
    ],
)
def test_manage_py_shows_the_usage_of_the_command_alone(arguments, fault):
    output = refusal("webhooks_replay", *arguments.split())
    assert f"manage.py webhooks_replay: error: {fault}" in output
    assert words(usage_of(output)) == {
        *("-h", "--delivery", "--endpoint", "--since"),
        *("--per-second", "--dry-run", "--json"),
    }
