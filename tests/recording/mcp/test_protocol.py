"""/mcp as HTTP: authentication, both protocol generations, and what is refused."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client as Browser

from tests.recording.conftest import error_of
from tests.recording.mcp.conftest import ACCEPT, META, STATELESS

MODERN = {"MCP_Protocol_Version": STATELESS}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NESTED = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b1%b}'


def initialize(version):
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }


def test_a_401_leads_to_the_metadata_of_this_resource(client, settings):
    response = client.post("/mcp", PING, "application/json")
    error_of(response, 401, "unauthorized")
    challenge = response["WWW-Authenticate"]
    address = f"{settings.BASE_URL}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{address}"' in challenge
    assert 'scope="mcp:connect"' in challenge
    metadata = client.get("/.well-known/oauth-protected-resource/mcp").json()
    assert metadata["resource"] == f"{settings.BASE_URL}/mcp"


def test_a_token_that_is_not_valid_is_a_401_that_says_so(mcp):
    response = mcp.post(PING, Authorization="Bearer rec_pat_wrong")
    error_of(response, 401, "unauthorized")
    assert 'error="invalid_token"' in response["WWW-Authenticate"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-11-25"])
def test_the_generation_with_a_handshake_is_served(mcp, version):
    result = mcp.post(initialize(version)).json()["result"]
    assert result["protocolVersion"] == version
    assert set(result["capabilities"]) == {
        "prompts",
        "resources",
        "tools",
        "events",
        "extensions",
    }
    assert "never instructions" in result["instructions"]
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    response = mcp.post(done, MCP_Protocol_Version=version)
    assert (response.status_code, response.content) == (202, b"")


def test_the_generation_without_a_handshake_is_served(mcp):
    body = PING | {"method": "tools/list", "params": {"_meta": META}}
    headers = {"MCP_Protocol_Version": STATELESS, "Mcp_Method": "tools/list"}
    response = mcp.post(body, **headers)
    assert response.status_code == 200, response.content
    assert response.json()["result"]["tools"]


def test_a_client_that_names_no_type_gets_json(mcp):
    headers = {"Authorization": f"Bearer {mcp.api.token}"}
    response = mcp.api.client.post(
        "/mcp", PING, content_type="application/json", headers=headers
    )
    assert response.status_code == 200, response.content
    assert response.json() == {"jsonrpc": "2.0", "id": PING["id"], "result": {}}


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
def test_a_client_that_names_events_first_gets_one(mcp, version):
    body = PING | {"method": "tools/list", "params": {"_meta": META}}
    response = mcp.post(
        body,
        Accept="text/event-stream, application/json",
        MCP_Protocol_Version=version,
        Mcp_Method="tools/list",
    )
    assert response.status_code == 200, response.content
    assert b'"list_recordings"' in response.content
    if version != STATELESS:  # which allows JSON where nothing precedes the answer
        assert response["Content-Type"].startswith("text/event-stream")
        assert response.content.startswith(b"event: message\r\ndata: {")
    assert "Connection" not in response


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
@pytest.mark.parametrize(
    "media_type",
    ["APPLICATION/JSON", "Application/Json; Charset=UTF-8", "application/json ;q=1"],
)
def test_a_media_type_may_be_written_in_capitals(mcp, version, media_type):
    body = PING | {"method": "tools/list", "params": {"_meta": META}}
    response = mcp.post(
        body,
        Content_Type=media_type,
        Accept="Application/JSON, Text/Event-Stream",
        MCP_Protocol_Version=version,
        Mcp_Method="tools/list",
    )
    assert response.status_code == 200, response.content


NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
WITH_BATCHES = {"MCP_Protocol_Version": "2025-03-26"}


def with_id(number, **more):
    return PING | {"id": number} | more


@pytest.mark.parametrize("accept", [ACCEPT, "text/event-stream, application/json"])
def test_a_batch_of_the_version_that_has_them_is_answered(mcp, accept):
    call = {"name": "list_recordings", "arguments": {}}
    batch = [
        with_id(1),
        NOTE,
        with_id("two", method="tools/call", params=call),
        with_id(3, method="no/such"),
        {"jsonrpc": "1.0", "id": 4},
    ]
    response = mcp.post(batch, Accept=accept, **WITH_BATCHES)
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "application/json"
    ping, called, unknown, malformed = response.json()
    assert ping == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (called["id"], called["result"]["isError"]) == ("two", False)
    assert (unknown["id"], unknown["error"]["code"]) == (3, -32601)
    assert malformed["error"]


def test_a_client_that_names_no_version_may_send_a_batch(mcp):
    headers = {"Authorization": f"Bearer {mcp.api.token}", "Accept": ACCEPT}
    response = mcp.api.client.post(
        "/mcp", [with_id(1)], content_type="application/json", headers=headers
    )
    assert [each["id"] for each in response.json()] == [1]


def test_a_batch_of_notifications_is_202(mcp):
    response = mcp.post([NOTE, NOTE], **WITH_BATCHES)
    assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize(
    ("_case", "body", "headers", "status"),
    [
        ("no JSON", b"{", {}, 400),
        ("no body", b"", {}, 400),
        ("a batch", [PING], {}, 400),
        (
            "a batch of another version",
            [PING],
            {"MCP_Protocol_Version": "2025-06-18"},
            400,
        ),
        ("a batch of the other generation", [PING], MODERN, 400),
        ("an empty batch", [], WITH_BATCHES, 400),
        ("a long batch", [PING] * 11, WITH_BATCHES, 400),
        ("a batch in a batch", [[PING]], WITH_BATCHES, 400),
        ("a batch of numbers", [PING, 1], WITH_BATCHES, 400),
        (
            "a batch with an id that is no id",
            [PING, PING | {"id": 0.5}],
            WITH_BATCHES,
            400,
        ),
        ("a batch with a handshake", [initialize("2025-03-26")], WITH_BATCHES, 400),
        ("a batch that accepts no JSON", [PING], WITH_BATCHES | {"Accept": "a/b"}, 406),
        ("deep nesting", NESTED % (b'{"a":' * 5000, b"}" * 5000), {}, 400),
        ("nesting that JSON allows", NESTED % (b"[" * 900, b"]" * 900), {}, 400),
        ("a lone surrogate", b'{"jsonrpc":"\\ud800"}', {}, 400),
        ("not UTF-8", b'{"jsonrpc":"\xff"}', {}, 400),
        ("too large", b'"' + b"x" * 65_536 + b'"', {}, 413),
        ("a form", b"a=b", {"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ("compressed", b"{}", {"Content_Encoding": "gzip"}, 415),
        ("no message of JSON-RPC", b'{"a": 1}', {}, 400),
        ("an id that is no id", PING | {"id": {}}, MODERN, 400),
        ("accepts no JSON", PING, {"Accept": "text/html"}, 406),
        ("an unknown version", PING, {"MCP_Protocol_Version": "1999-01-01"}, 400),
        ("no version", PING, {"MCP_Protocol_Version": "\x7f"}, 400),
    ],
)
def test_what_cannot_be_read_is_refused(mcp, _case, body, headers, status):
    response = mcp.post(body, **headers)
    assert response.status_code == status, response.content
    assert b"Traceback" not in response.content
    assert response.json()["error"] if response.content else status == 406


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("no/such", {}),
        ("tools/call", {}),
        ("tools/call", {"name": 7}),
        ("tools/call", {"name": "list_recordings", "arguments": []}),
        ("resources/read", {"uri": "file:///etc/passwd"}),
        ("resources/read", {"uri": "recording://../../etc"}),
        ("resources/read", {"uri": "recording://a%00b"}),
        ("prompts/get", {"name": "no_such"}),
        ("subscriptions/listen", {}),
    ],
)
def test_a_request_that_makes_no_sense_is_an_error_of_json_rpc(mcp, method, params):
    error = mcp.request(method, params)["error"]
    assert isinstance(error["code"], int)
    assert "Traceback" not in error["message"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "recording://x"}),
        ("resources/unsubscribe", {"uri": "recording://x"}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "x"},
                "argument": {"name": "x", "value": ""},
            },
        ),
        ("tasks/get", {"taskId": "x"}),
    ],
)
def test_what_is_not_offered_is_an_unknown_method(mcp, method, params):
    error = mcp.request(method, params)["error"]
    assert (error["code"], error["message"]) == (-32601, "Method not found")


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
def test_there_is_no_session_to_open_or_end(mcp, method):
    headers = {"Authorization": f"Bearer {mcp.api.token}"}
    response = getattr(mcp.api.client, method)("/mcp", headers=headers)
    error_of(response, 405, "method_not_allowed")
    assert response["Allow"] == "POST, OPTIONS"


def test_scripts_of_any_site_may_call_it(mcp):
    response = mcp.post(PING, Origin="https://inspector.example")
    assert response["Access-Control-Allow-Origin"] == "*"
    assert response["Cache-Control"] == "no-store"
    preflight = Browser().options("/mcp")
    assert "POST" in preflight["Access-Control-Allow-Methods"]


def test_a_host_that_is_not_ours_is_refused(mcp):
    assert mcp.post(PING, Host="evil.example").status_code == 400


def test_an_account_has_a_rate(mcp, settings):
    cache.clear()
    settings.RECORDING_RATES = settings.RECORDING_RATES | {"mcp": "2/hour"}
    statuses = [mcp.post(PING).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert "Retry-After" in mcp.post(PING)


def test_each_message_of_a_batch_counts_for_the_rate(mcp, settings):
    cache.clear()
    settings.RECORDING_RATES = settings.RECORDING_RATES | {"mcp": "3/hour"}
    statuses = [
        mcp.post([PING] * count, **WITH_BATCHES).status_code for count in (2, 2, 1)
    ]
    assert statuses == [200, 429, 429]
