"""Hostile messages: each gets an answer that names the fault, and nothing else happens."""

import base64
import logging
from itertools import cycle
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from recording.models import Recording
from tests.recording.conftest import URL
from tests.recording.mcp.conftest import HANDSHAKE, META, STATELESS, Client, store
from webhooks_core.models import Delivery, Endpoint, Event

SECRET = "aud_of_mallory"
GENERATIONS = cycle([HANDSHAKE, STATELESS])

ENDPOINT = "ep_" + "0" * 26  # stands for an endpoint of the account
# Valid arguments of every tool; each in turn is replaced by something hostile.
TOOLS: dict[str, dict[str, Any]] = {
    "list_recordings": {"title": "", "since": None, "until": None, "limit": 20, "cursor": None},
    "search_recordings": {"query": "harbour", "since": None, "until": None, "cursor": None},
    "get_recording": {"audio_id": "aud_own"},
    "get_summary": {"audio_id": "aud_own", "cursor": None},
    "get_transcript": {
        "audio_id": "aud_own", "part": "segments", "start_s": 0, "end_s": 9, "limit": 9, "cursor": None
    },
    "list_webhooks": {},
    "create_webhook": {"url": URL, "events": []},
    "delete_webhook": {"endpoint_id": ENDPOINT},
    "send_test_event": {"endpoint_id": ENDPOINT},
    "list_deliveries": {"endpoint_id": ENDPOINT, "page": 1, "page_size": 20},
}  # fmt: skip
# As they stand in the message: some are no JSON, some are JSON again in a string.
HOSTILE = (
    b'"a\\u0000b"', b'"\\ud800"', b'"[\\"\\\\ud800\\"]"', b"NaN", b"1e400", b"-1", b"1.5",
    b"9223372036854775808", b"1180591620717411303424", b'"nan"', b'"Infinity"', b"true", b"null",
    b"[]", b'{"a": [1]}', b'"%s"' % (b"x" * 60_000), b'"%s"' % (b"[" * 30_000),
    b"[" * 240 + b"]" * 240, b'"%s"' % (b"9" * 5000), b'"../%%00/{audio_id}"', b'"\\u202e\xf0\x9f\x98\x80"',
    b'"0000-01-01T00:00:00Z"', b'"9999-12-31T23:59:59-14:00"', b'"0001-01-01T00:00:00+14:00"',
)  # fmt: skip


@pytest.fixture
def library(mcp, stranger) -> str:
    """A recording of each account, and the id of an endpoint."""
    store(mcp.api, audio_id="aud_own")
    store(stranger, audio_id=SECRET)
    endpoint_id: str = mcp.api.create()["endpoint_id"]
    return endpoint_id


@pytest.fixture(autouse=True)
def no_crash(caplog):
    """What a caller does wrong is not logged as an error of ours."""
    yield
    records = caplog.get_records("call")
    assert [row for row in records if row.levelno >= logging.ERROR] == []


def send(mcp: Client, body: bytes, method: str, name: str, generation: str):
    response = mcp.post(
        body, MCP_Protocol_Version=generation, Mcp_Method=method, Mcp_Name=name
    )
    assert response.status_code in {200, 400}, response.content
    for text in (b"Error executing", b"Error rendering", b"Traceback", SECRET.encode()):
        assert text not in response.content
    return response


def stored() -> list[list[dict[str, object]]]:
    models: tuple[Any, ...] = (Endpoint, Event, Delivery, Recording)
    return [list(model.objects.order_by("pk").values()) for model in models]


def message(method: str, **params: object) -> bytes:
    params["_meta"] = META
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


@pytest.mark.parametrize("tool", TOOLS)
def test_a_hostile_argument_is_named_or_harmless(mcp, library, tool):
    own = {ENDPOINT: library}
    arguments = {name: own.get(str(each), each) for name, each in TOOLS[tool].items()}
    arguments = arguments or {"other": 1}
    template = message("tools/call", name=tool, arguments=arguments)
    before = stored()
    for name, argument in arguments.items():
        valid = orjson.dumps({name: argument})[1:-1]
        assert template.count(valid) == 1
        for value, generation in zip(HOSTILE, GENERATIONS, strict=False):
            body = template.replace(valid, b'"%s":%s' % (name.encode(), value))
            response = send(mcp, body, "tools/call", tool, generation)
            if response.status_code == 200 and not response.json()["result"]["isError"]:
                before = stored()
    assert stored() == before


def encoded(value: object) -> str:
    text = value if isinstance(value, bytes) else orjson.dumps(value)
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


NOON = "2026-11-23T12:00:00Z"


CURSORS = (
    encoded([NOON, -1]), encoded([NOON, 1.5]), encoded([NOON, True]), encoded([NOON, 2**63]),
    encoded(b'["2026-11-23",%d]' % 2**70), encoded(["0001-01-01T00:00:00+14:00", 1]),
    encoded([]), encoded([None, 1]), encoded({NOON: 1, "1": 2}), encoded(b"[" * 700), encoded(b"1e400"),
    encoded([NOON, -1, 0]), encoded([NOON, 1, 2**63]), encoded([0, NOON, 1, 0]),
    encoded([4, NOON, 1, 0]), encoded([True, NOON, 1, 0]),
    encoded([1, "9999-12-31T23:59:59-14:00", 1, 0]), encoded([1, NOON, 2**63, 0]), "=", "é", "",
    "1.-1", "\u0660.\u0660", "0.0\n", "9999999999.0",
)  # fmt: skip


@pytest.mark.parametrize(
    "tool", ["list_recordings", "search_recordings", "get_summary", "get_transcript"]
)
def test_a_forged_cursor_is_refused(mcp, library, tool):
    for cursor in CURSORS:
        refusal = mcp.refusal(tool, **TOOLS[tool] | {"cursor": cursor})
        assert refusal.startswith("cursor is not one that this ")


@pytest.mark.parametrize("generation", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize(
    "number",
    [b"null", b"1.5", b"1.0", b"true", b"[]", b"{}", b"18446744073709551616", b"1e400"],
)
def test_an_id_that_is_none_is_refused(mcp, generation, number):
    body = message("tools/list").replace(b'"id":1', b'"id":' + number)
    assert send(mcp, body, "tools/list", "", generation).status_code == 400


@pytest.mark.parametrize("generation", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize("more", [{}, {"requestState": "forged"}, {"_meta": META}])
def test_a_notification_has_no_effect(mcp, generation, more):
    endpoint_id = mcp.api.create()["endpoint_id"]
    arguments = {"name": "delete_webhook", "arguments": {"endpoint_id": endpoint_id}}
    response = mcp.post(
        {"jsonrpc": "2.0", "method": "tools/call", "params": arguments | more},
        MCP_Protocol_Version=generation,
        Mcp_Method="tools/call",
        Mcp_Name="delete_webhook",
    )
    assert (response.status_code, response.content) == (202, b"")
    assert mcp.call("list_webhooks")["webhooks"]


@pytest.mark.parametrize("generation", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize(
    "audio_id",
    ["..", ".", "a/b", "/etc/passwd", "C:x", "a%2Fb", "%00", "%", "{audio_id}", "a?b#c", "\u202e😀", "x" * 255],
)  # fmt: skip
def test_every_id_is_an_address_of_its_own(mcp, generation, audio_id):
    uri = f"recording://{quote(audio_id, safe='')}"
    body = message("resources/read", uri=uri)
    response = send(mcp, body, "resources/read", uri, generation)
    error = response.json()["error"]
    assert error["message"] == "There is no such recording."
    assert error["code"] == -32602
    store(mcp.api, audio_id=audio_id, title="Strange")
    response = send(mcp, body, "resources/read", uri, generation)
    assert response.json()["result"]["contents"][0]["text"].startswith("# Strange")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"topic": "x" * 501}, "topic: String should have at most 500 characters"),
        ({"topic": "[" * 60_000}, "topic: String should have at most 500 characters"),
        ({"topic": "x", "more": "y"}, "more: Unexpected keyword argument"),
        ({"topic": 7}, "Invalid request parameters"),
        ({}, "Missing required arguments: {'topic'}"),
    ],
)
def test_a_wrong_argument_of_a_prompt_is_named(mcp, arguments, text):
    wanted = {"name": "collect_action_items", "arguments": arguments}
    assert mcp.request("prompts/get", wanted)["error"]["message"] == text
