"""What `manage.py up` and `manage.py web` refuse: one clear line, and nothing has been done."""

import re
import socket

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from tests.deploy_check import PRODUCTION
from tests.e2e.starting import READY, outcomes, rows, variables
from tests.running import environment, free_port, running


def test_a_busy_port_and_a_wrong_option_are_one_clear_line_before_anything_is_done(
    tmp_path,
):
    """A wrong option also of the web server that runs alone."""
    data = tmp_path / "none.sqlite3"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        busy, *wrong = outcomes(
            ("up", "--port", str(port)),
            ("web", "--host", "0.0.0.0"),  # noqa: S104
            ("web", "--port", "x"),
            environment=variables(data, BASE_URL=f"http://127.0.0.1:{port}"),
        )
    assert not data.exists()
    assert busy.status == 1
    [line] = busy.output.splitlines()
    assert f"cannot listen on 127.0.0.1 port {port}: it is taken" in line
    assert "make run ARGS='--port N'" in line
    assert "Errno" not in line
    for outcome, option in zip(wrong, ("--host", "--port"), strict=True):
        assert outcome.status in {1, 2}
        assert option in outcome.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--host", "0.0.0.0"), "--host: '0.0.0.0' is not a loopback address"),  # noqa: S104
        (("--host", "192.0.2.1"), "--host: '192.0.2.1' is not a loopback address"),
        (("--port", "http"), "argument --port: 'http' is not a whole number"),
        (("--no-web", "--no-worker"), "leave nothing to do"),
    ],
)
def test_an_option_that_cannot_be_is_an_error_before_anything_is_done(options, words):
    with pytest.raises(CommandError, match=re.escape(words)):
        call_command("up", *options)


def production(**more: str) -> dict[str, str]:
    return environment(**(PRODUCTION | more))


def test_production_refuses_an_address_that_is_not_its_own():
    elsewhere = ("up", "--port", str(free_port()), "--host", "192.0.2.1")
    (outcome,) = outcomes(elsewhere, environment=production())
    assert outcome.status == 1
    assert "cannot listen on 192.0.2.1 port" in outcome.output
    assert "Traceback" not in outcome.output


def test_a_database_that_is_away_is_one_clear_line_without_the_password():
    away = production(DATABASE_URL="postgres://signpost:hidden@127.0.0.1:1/signpost")
    arguments = ("manage.py", "up", "--port", str(free_port()))
    with running(*arguments, environment=away) as it:
        assert it.status() == 1
        assert "the database is not usable: connection failed" in it.output
        assert "Traceback" not in it.output
        assert "hidden" not in it.output


def test_production_gets_no_demo_data(data):
    variables = production(DATABASE_URL=f"sqlite:///{data}", WORKERS="2")
    arguments = ("manage.py", "up", "--port", str(free_port()), "--no-web")
    with running(*arguments, environment=variables) as it:
        it.wait_for(READY)
        assert it.end() == 0
    assert rows(data)["auth_user"] == []
