"""The usage of every command names its own arguments, in an error and with --help."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.core.management.base import DjangoHelpFormatter
from django.utils import timezone

from config.command_line import CommandLine
from config.demo.steps import Instance, StepError
from gateway.models import GatewayKey, PortalLink
from recording.models import PersonalToken
from tests.docs.test_command_answers import ours
from tests.docs.test_commands import options
from tests.e2e.starting import outcomes
from tests.factories import UserFactory
from tests.hostile import CONTROLS, is_printable
from tests.running import environment
from webhooks_core import endpoints
from webhooks_core.management.output import format_output, write_list
from webhooks_core.models import Event

COMMON = DjangoHelpFormatter.show_last | {"-v"}


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
def test_manage_py_shows_the_usage_of_the_command_alone():
    faults = {
        "--bogus --delivery dlv_1": "unrecognized arguments: --bogus",
        "": "one of the arguments --delivery --endpoint --failed is required",
        "--endpoint ep_1 --per-second many": "argument --per-second: 'many' is not",
    }
    commands = (("webhooks_replay", *arguments.split()) for arguments in faults)
    refused = outcomes(*commands, environment=environment())
    for (status, output), fault in zip(refused, faults.values(), strict=True):
        assert status == 2
        assert f"manage.py webhooks_replay: error: {fault}" in output
        assert words(usage_of(output)) == {
            *("-h", "--delivery", "--endpoint", "--failed", "--owner", "--since"),
            *("--per-second", "--dry-run", "--json"),
        }


@pytest.mark.parametrize("hostile", CONTROLS)
@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_passes_a_control_character_on(hostile, as_json, capsys, tmp_path):
    """Of a file that is refused, of a value that is listed, of one that is printed as JSON."""
    file = tmp_path / "data.json"
    file.write_text(json.dumps({"document_id": {hostile: hostile}}))
    arguments = ["emit_event", "ingest.completed", "--tenant=acme", f"--file={file}"]
    command = CommandLine(["manage.py"]).fetch_command(arguments[0])
    with pytest.raises(SystemExit):
        command.run_from_argv(["manage.py", *arguments])
    row = {"name": hostile, "scopes": [hostile]}
    write_list(command, [row], as_json=as_json, noun="rows")
    written, refused = capsys.readouterr()
    assert "not the data of ingest.completed" in refused
    assert is_printable(refused)
    assert is_printable(written.replace("\t", ""))
    assert not as_json or json.loads(written) == [row]
    text = format_output(row, f"a {hostile}", as_json=as_json)
    assert is_printable(text)
    assert not as_json or json.loads(text) == row


@pytest.mark.parametrize("hostile", CONTROLS)
def test_the_demo_quotes_a_stranger_without_control_characters(hostile, httpserver):
    httpserver.expect_request("/x").respond_with_data(hostile.encode(), status=500)
    httpserver.expect_request("/y").respond_with_data(f'"{hostile}"'.encode())
    said: list[str] = []
    instance = Instance(httpserver.url_for("").rstrip("/"), said.append, 0)
    for path in ("/x", "/y"):
        with pytest.raises(StepError) as refused:
            instance.call("GET", path)
        assert is_printable(str(refused.value))
    with instance.step("a step"):
        instance.show(value=hostile)
    assert is_printable("".join(said))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("reason", ["the output is closed", "No space left on device"])
class TestAResultThatIsNotPrinted:
    """What no command shows again is not made."""

    @pytest.mark.parametrize(
        ("command", "model"),
        [
            (("create_gateway_key", "--tenant=a", "--principal=p"), GatewayKey),
            (("create_portal_link", "--tenant=a"), PortalLink),
            (("create_personal_token", "ada", "--days=1"), PersonalToken),
            (("emit_event", "drift.detected", "--tenant=a"), Event),
        ],
    )
    def test_is_one_line_and_undone(self, reason, command, model, monkeypatch, capsys):
        UserFactory.create(username="ada")
        assert unprinted(reason, monkeypatch, *command) == 1
        line = f"CommandError: cannot write the result: {reason}\n"
        assert capsys.readouterr().err == line
        assert not model.objects.exists()

    def test_keeps_the_secret_of_an_endpoint(self, reason, monkeypatch):
        endpoint = endpoints.create(
            profile="gateway", owner="a", url="https://a.example", event_types=[]
        ).endpoint
        before = endpoint.secrets(now=timezone.now())
        command = "webhooks_rotate_secret", endpoint.public_id
        assert unprinted(reason, monkeypatch, *command) == 1
        assert endpoint.secrets(now=timezone.now()) == before


def unprinted(reason: str, monkeypatch: pytest.MonkeyPatch, *command: str) -> object:
    """Run a command that cannot print for this reason; return its exit status."""
    line = ["manage.py", *command]
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None if "closed" in reason else full)
        with pytest.raises(SystemExit) as ended:
            CommandLine(line).fetch_command(command[0]).run_from_argv(line)
    return ended.value.code
