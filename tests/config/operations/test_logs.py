"""The log on a terminal: what strangers send is shown, and controls nothing."""

import io
import logging
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
import structlog

from config.operations import logs
from tests.hostile import CONTROLS, is_printable


@pytest.fixture
def console() -> Iterator[Callable[[], str]]:
    """Configure the log of a local instance; return a function that reads what it wrote since."""
    logs.configure({"level": logging.INFO, "as_json": False})
    [handler] = [h for h in logging.getLogger().handlers if h.name == "stderr"]
    assert isinstance(handler, logging.StreamHandler)
    stream = io.StringIO()
    handler.setStream(stream)

    def read() -> str:
        written = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return written

    yield read
    logs.configure({"level": logging.INFO, "as_json": False})


@pytest.mark.parametrize("hostile", CONTROLS)
def test_a_request_controls_no_terminal_and_adds_no_line(client, console, hostile):
    for request in (
        {"path": f"/{quote(hostile)}", "method": "GET"},
        {"path": f"/openapi.json?{quote(hostile)}={hostile}", "method": "GET"},
        {"path": "/healthz", "method": f"GET{hostile}"},
        {"path": "/openapi.json", "method": "GET", "HTTP_X_REQUEST_ID": hostile},
    ):
        client.generic(**request)
        written = console()
        assert written.count("\n") == 1, written
        assert hostile not in written
        assert is_printable(written)


@pytest.mark.parametrize("hostile", ["\n", *CONTROLS])
def test_no_value_of_a_record_controls_a_terminal(console, hostile):
    log, standard = structlog.stdlib.get_logger("own"), logging.getLogger("other")
    log.warning("event", text=hostile, values=[hostile], error=ValueError(hostile))
    log.warning("event %s", hostile)
    standard.warning("a message with %s", hostile)
    standard.warning(hostile)
    written = console()
    assert written.count("\n") == 4
    assert is_printable(written)


def test_a_traceback_keeps_its_lines_and_its_message_controls_nothing(console):
    try:
        int("\x1b[2J")
    except ValueError:
        structlog.stdlib.get_logger("own").exception("failed")
    written = console()
    assert "\nTraceback (most recent call last):\n" in written
    assert written.endswith("'\\x1b[2J'\n")
