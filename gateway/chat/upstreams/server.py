"""Servers over HTTP: those with OpenAI's API, those with Anthropic's, and those with several."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from functools import lru_cache
from urllib.parse import quote

from gateway.chat.sse import BlockReader, EventReader
from gateway.chat.upstreams import http
from gateway.chat.upstreams.base import Call, Sent, Upstream
from gateway.chat.upstreams.echo import Echo
from gateway.chat.upstreams.servers import SERVERS
from gateway.configuration.shapes import ModelEntry, Target
from webhooks_core.network.client import Answer, HttpClient

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
        return await http.read_body(await self._post(call, sent))

    def stream(self, call: Call, sent: Sent) -> AsyncGenerator[list[bytes]]:
        # Clients of the other APIs get whole events as they are, with their names.
        kind = BlockReader if sent.is_native and sent.api != "chat" else EventReader
        return http.events(self._post(call, sent), kind)

    def _post(self, call: Call, sent: Sent) -> Awaitable[Answer]:
        url, headers = _prepared(call, sent)
        is_kept = sent.is_native and sent.api == "messages"
        return http.post(
            self._client, call, url, headers, sent.body, keeps_errors=is_kept
        )


def connect(client: HttpClient) -> Mapping[str, Upstream]:
    """Return an upstream of each kind, which calls through this client."""
    server = Server(client)
    return {"openai": server, "anthropic": server, "echo": Echo()}


def _prepared(call: Call, sent: Sent) -> tuple[str, Mapping[str, str]]:
    """Return the URL of a call, and its headers besides the usual ones."""
    entry, target = call.entry, call.target
    kind = "anthropic" if entry.upstream == "anthropic" else entry.server
    url, key = _place(kind, target, entry.api_version, sent.path)
    if sent.api != "messages":
        return url, key
    passed = call.context.passed_headers if sent.is_native else {}
    if sent.is_native and BETA in call.context.passed_query.split("&"):
        url += f"?{BETA}"
    return url, {"anthropic-version": VERSION, **passed, **key}


@lru_cache(maxsize=1024)
def _place(
    kind: str, target: Target, version: str, path: str
) -> tuple[str, Mapping[str, str]]:
    """Return the URL of a call, and the header with the key."""
    base, key = target.base_url.rstrip("/"), target.api_key.strip()
    if kind == "anthropic":
        url = f"{base.removesuffix('/v1')}/v1/{path}"
        return url, {"x-api-key": key} if key else {}
    server = SERVERS[kind]
    place = server.path.format(path=path, model=quote(target.model, safe=""))
    version = version or server.api_version
    query = f"?api-version={version}" if version else ""
    headers = {server.key_header: server.key.format(key=key)} if key else {}
    return f"{base or DEFAULT_BASE_URL}/{place}{query}", headers
