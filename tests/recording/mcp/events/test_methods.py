"""Capability, `events/list`, and the numbers of errors."""

from __future__ import annotations

import jsonschema
import pytest

from recording.mcp.events import errors
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.recording.mcp.conftest import STATELESS
from tests.recording.mcp.events.conftest import (
    CAPABILITIES,
    EVENT,
    EXTENSION,
    EventsClient,
)
from tests.recording.mcp.test_protocol import initialize


@pytest.mark.spec(
    "mcp-events", "server/discover names the extension with its settings object"
)
def test_discovery_names_the_extension_and_the_key_that_assistants_read(events):
    response = events.send("server/discover")
    capabilities = response.json()["result"]["capabilities"]
    assert capabilities["extensions"] == {EXTENSION: {"listChanged": False}}
    assert capabilities["events"] == {}
    assert set(capabilities) == {
        "prompts",
        "resources",
        "tools",
        "events",
        "extensions",
    }


def test_the_handshake_names_it_too(mcp):
    capabilities = mcp.post(initialize("2025-11-25")).json()["result"]["capabilities"]
    assert capabilities["events"] == {}
    assert EXTENSION in capabilities["extensions"]


@pytest.mark.spec("mcp-events", "a server answers without the extension with -32601")
def test_a_method_that_is_not_of_the_extension_is_not_found(events):
    assert events.refused("replay")["code"] == -32601


@pytest.mark.spec(
    "mcp-events",
    "events/list: name, description, delivery, inputSchema, payloadSchema",
    "every result carries resultType complete",
)
def test_the_list_describes_the_one_event_type(events):
    result = events.do("list")
    assert result["resultType"] == "complete"
    assert "nextCursor" not in result
    [item] = result["events"]
    assert item["name"] == EVENT
    assert item["description"]
    assert "poll" in item["delivery"]
    assert set(item["inputSchema"]["properties"]) == {
        "title_contains",
        "label",
        "min_duration_ms",
        "include_transcript",
    }
    assert item["inputSchema"]["properties"]["include_transcript"]["default"] is False
    for schema in (item["inputSchema"], item["payloadSchema"]):
        jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(SUMMARY_COMPLETED_SAMPLE, item["payloadSchema"])
    assert "webhook.ping" not in str(result)


def test_the_list_has_one_page(events):
    assert "cursor" in events.refused("list", cursor="x")["message"]
    assert events.do("list", cursor=None)["events"]


NUMBERS = [
    (errors.InvalidParamsError, -32602, -32602),
    (errors.NotFoundError, -32023, -32011),
    (errors.ForbiddenError, -32024, -32012),
    (errors.ResourceExhaustedError, -32025, -32013),
    (errors.UnsupportedError, -32026, -32014),
    (errors.CallbackEndpointError, -32027, -32015),
]


@pytest.mark.spec("mcp-events", "the six errors and their numbers")
@pytest.mark.parametrize(("kind", "code", "draft_code"), NUMBERS)
def test_each_error_has_the_numbers_of_both_texts(kind, code, draft_code):
    error = kind("why", limit="x")
    assert error.as_dict(is_draft=False) == {
        "code": code,
        "message": f"{kind.name}: why",
        "data": {"limit": "x"},
    }
    assert error.as_dict(is_draft=True)["code"] == draft_code


@pytest.mark.spec("mcp-events", "NotFound for an unknown event name")
def test_a_client_gets_the_numbers_of_the_text_that_it_declares(api):
    for is_draft, code in ((False, -32023), (True, -32011)):
        error = EventsClient(api, is_draft=is_draft).refused("poll", name="no.such")
        assert (error["code"], error["data"]) == (code, {"kind": "event"})
        assert EVENT in error["message"]


def test_the_earlier_protocol_gets_the_numbers_of_the_draft(mcp):
    answer = mcp.request("events/poll", {"name": "no.such"})
    assert answer["error"]["code"] == -32011


@pytest.mark.parametrize(
    "capabilities", [{}, {"extensions": None}, {"extensions": {}}, "x", None]
)
def test_a_strange_declaration_of_the_client_is_no_crash(events, capabilities):
    events.meta = events.meta | {CAPABILITIES: capabilities}
    response = events.send("events/poll", name="no.such")
    assert response.status_code in {200, 400}
    assert response.json()["error"]["code"] in {-32011, -32602, -32600}


def test_a_version_that_is_not_served_is_refused_as_for_every_method(events):
    headers = {"MCP_Protocol_Version": "2020-01-01", "Mcp_Method": "events/list"}
    assert events.post(events.message("events/list", {}), **headers).status_code == 400
    assert STATELESS in events.send("server/discover").content.decode()
