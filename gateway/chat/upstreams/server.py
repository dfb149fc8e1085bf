"""Servers over HTTP: those with OpenAI's API, those with Anthropic's, and those with several."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from urllib.parse import quote

from gateway.chat.sse import BlockReader, EventReader
from gateway.chat.upstreams import http
from gateway.chat.upstreams.base import Call, Sent
from gateway.chat.upstreams.servers import SERVERS
from gateway.configuration.shapes import ModelEntry
from webhooks_core.network.client import HttpClient

VERSION = "2023-06-01"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
BETA = "beta=true"  # of the query


class Server:
    """Posts requests, and reads answers."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def apis(self, entry: ModelEntry) -> frozenset[str]:
        return entry.speaks

    async def post(self, call: Call, sent: Sent) -> bytes:
        async with self._posted(call, sent) as response:
            return await http.read_body(response)

    async def stream(self, call: Call, sent: Sent) -> AsyncGenerator[list[bytes]]:
        # A client of Anthropic's API gets whole events as they are, with their names.
        kind = BlockReader if _is_passed_message(sent) else EventReader
        posting = self._posted(call, sent)
        del call, sent  # a stream may last, and a prompt be long
        async with posting as response:
            async for payloads in http.events(response, kind):
                yield payloads

    def _posted(self, call: Call, sent: Sent) -> http.Posting:
        is_passed = _is_passed_message(sent)
        prepared = _prepared(call, sent)
        return http.post(self._client, call, prepared, keeps_errors=is_passed)


def _is_passed_message(sent: Sent) -> bool:
    return sent.is_native and sent.api == "messages"


def _prepared(call: Call, sent: Sent) -> http.Prepared:
    url, headers = (_anthropic if call.entry.upstream == "anthropic" else _openai)(
        call, sent
    )
    if sent.api == "messages":
        passed = call.context.passed_headers if sent.is_native else {}
        headers = {"anthropic-version": VERSION, **passed, **headers}
        if sent.is_native and BETA in call.context.passed_query.split("&"):
            url += f"?{BETA}"
    return http.Prepared(url, headers, sent.body)


def _anthropic(call: Call, sent: Sent) -> tuple[str, dict[str, str]]:
    base = call.target.base_url.rstrip("/").removesuffix("/v1")
    key = call.target.api_key.strip()
    return f"{base}/v1/{sent.path}", {"x-api-key": key} if key else {}


def _openai(call: Call, sent: Sent) -> tuple[str, dict[str, str]]:
    server, target = SERVERS[call.entry.server], call.target
    base, key = (
        (target.base_url or DEFAULT_BASE_URL).rstrip("/"),
        target.api_key.strip(),
    )
    place = server.path.format(path=sent.path, model=quote(target.model, safe=""))
    version = call.entry.api_version or server.api_version
    query = f"?api-version={version}" if version else ""
    headers = {server.key_header: server.key.format(key=key)} if key else {}
    return f"{base}/{place}{query}", headers
