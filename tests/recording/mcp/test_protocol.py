"""/mcp as HTTP: authentication, both protocol generations, and what is refused."""

import asyncio
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.cache import cache
from django.db import OperationalError
from django.utils import timezone

from recording import token_memory
from recording.accounts import personal_tokens
from recording.mcp import asgi
from recording.mcp.asgi import MCPApplication
from tests.clock import travel
from tests.products.product import RECORDING
from tests.recording.mcp.conftest import META, STATELESS, initialize, respond
from tests.running import PATIENCE_S

MODERN = {"MCP_Protocol_Version": STATELESS}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NESTED = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b1%b}'


def test_a_401_leads_to_the_metadata_of_this_resource(mcp, client, settings):
    response = mcp.post(PING, Authorization="")
    RECORDING.error(response, 401)
    challenge = response["www-authenticate"]
    address = f"{settings.BASE_URL}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{address}"' in challenge
    assert 'scope="mcp:connect"' in challenge
    metadata = client.get("/.well-known/oauth-protected-resource/mcp").json()
    assert metadata["resource"] == f"{settings.BASE_URL}/mcp"
    response = mcp.post(PING, Authorization="Bearer rec_pat_wrong")
    RECORDING.error(response, 401)
    assert 'error="invalid_token"' in response["www-authenticate"]


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


@pytest.mark.parametrize("accept", ["", "*/*", "text/event-stream, application/json"])
@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
def test_every_client_gets_json(mcp, version, accept):
    body = PING | {"method": "tools/list", "params": {"_meta": META}}
    headers = {"MCP_Protocol_Version": version, "Mcp_Method": "tools/list"}
    headers["Content_Type"] = "Application/Json; Charset=UTF-8"
    response = mcp.post(body, Accept=accept, **headers)
    assert response.status_code == 200, response.content
    assert response["cache-control"] == "no-store"
    assert response["content-type"].startswith("application/json")
    assert response.json()["result"]["tools"]


@pytest.mark.parametrize(
    ("_case", "body", "headers", "status"),
    [
        ("no JSON", b"{", {}, 400),
        ("no body", b"", {}, 400),
        ("a batch", [PING], {}, 400),
        ("a batch of the other generation", [PING], MODERN, 400),
        ("deep nesting", NESTED % (b'{"a":' * 5000, b"}" * 5000), {}, 400),
        ("nesting that JSON allows", NESTED % (b"[" * 900, b"]" * 900), {}, 400),
        ("a lone surrogate", b'{"jsonrpc":"\\ud800"}', {}, 400),
        ("not UTF-8", b'{"jsonrpc":"\xff"}', {}, 400),
        ("too large", b'"' + b"x" * 65_536 + b'"', {}, 413),
        ("a form", b"a=b", {"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ("compressed", b"{}", {"Content_Encoding": "gzip"}, 415),
        ("no message of JSON-RPC", b'{"a": 1}', {}, 400),
        ("an unknown version", PING, {"MCP_Protocol_Version": "1999-01-01"}, 400),
        ("no version", PING, {"MCP_Protocol_Version": "\x7f"}, 400),
    ],
)
def test_what_cannot_be_read_is_refused(mcp, _case, body, headers, status):
    response = mcp.post(body, **headers)
    assert response.status_code == status, response.content
    assert b"Traceback" not in response.content
    assert response.json()["error"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("no/such", {}),
        ("tools/call", {}),
        ("tools/call", {"name": 7}),
        ("tools/call", {"name": "list_recordings", "arguments": []}),
        ("resources/read", {"uri": "file:///etc/passwd"}),
        ("resources/read", {"uri": "recording://../../etc"}),
        ("prompts/get", {"name": "no_such"}),
        ("subscriptions/listen", {}),
    ],
)
def test_a_request_that_makes_no_sense_is_an_error_of_json_rpc(mcp, method, params):
    error = mcp.request(method, params)["error"]
    assert isinstance(error["code"], int)
    assert "Traceback" not in error["message"]


def test_a_request_has_an_id(mcp):
    assert mcp.post(PING, X_Request_Id="a-1").headers["x-request-id"] == "a-1"
    made = mcp.post(PING, X_Request_Id="not valid").headers["x-request-id"]
    assert len(made) == 32


def test_an_account_has_a_rate(mcp, settings):
    cache.clear()
    settings.RECORDING_RATES = settings.RECORDING_RATES | {"mcp": "2/hour"}
    statuses = [mcp.post(PING).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert "retry-after" in mcp.post(PING).headers


def test_a_known_token_takes_no_query(mcp, django_assert_num_queries):
    with travel(timezone.now(), tick=False):
        assert mcp.post(PING).status_code == 200
        with django_assert_num_queries(0):
            assert mcp.post(PING).status_code == 200


@pytest.mark.parametrize("takes_long", [True, False])
def test_messages_run_one_after_the_other_but_none_waits_long(
    mcp, monkeypatch, takes_long
):
    monkeypatch.setattr(asgi, "QUICK_S", 0 if takes_long else PATIENCE_S)
    running = [0]

    async def in_thread(function: Any) -> Any:
        running.append(running[-1] + 1)
        for _ in range(500):  # the others have their turns meanwhile
            await asyncio.sleep(0)
        result = await sync_to_async(function)()
        running.append(running[-1] - 1)
        return result

    async def answers() -> list[Any]:
        application = MCPApplication(in_thread)
        sent = [respond(application, body, mcp.headers) for _ in range(5)]
        return await asyncio.gather(*sent)

    token_memory.find(mcp.api.token, lambda _: mcp.api.user)
    call = {"name": "list_recordings", "arguments": {}}
    body = orjson.dumps(PING | {"method": "tools/call", "params": call})
    assert {each.status_code for each in async_to_sync(answers)()} == {200}
    assert (max(running) > 1) is takes_long


def test_an_outage_is_503(mcp, monkeypatch):
    def away(token):
        raise OperationalError("connection refused")

    monkeypatch.setattr(personal_tokens, "authenticate", away)
    RECORDING.error(mcp.post(PING), 503)
