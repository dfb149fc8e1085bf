"""Servers with OpenAI's API: OpenAI itself, those of servers.py, another gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from urllib.parse import quote

import aiohttp

from gateway.chat.upstreams import http
from gateway.chat.upstreams.base import Job
from gateway.chat.upstreams.servers import SERVERS
from gateway.chat.upstreams.tolerance import adapted

DEFAULT_BASE_URL = "https://api.openai.com/v1"


class OpenAI:
    """Passes requests and responses on with another name of the model."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client

    async def complete(self, job: Job) -> bytes:
        return await self._post(job, "chat/completions")

    async def embed(self, job: Job) -> bytes:
        return await self._post(job, "embeddings")

    async def respond(self, job: Job) -> bytes:
        """Return a response of the Responses API as JSON, for a request in its shape."""
        return await self._post(job, "responses")

    async def _post(self, job: Job, path: str) -> bytes:
        async with http.post(self._client, job, partial(_call, path=path)) as response:
            return await http.read_body(response)

    def stream(self, job: Job) -> AsyncGenerator[list[bytes]]:
        return self._events(job, "chat/completions")

    def respond_in_parts(self, job: Job) -> AsyncGenerator[list[bytes]]:
        """Yield the events of a response of the Responses API, as stream() does."""
        return self._events(job, "responses")

    async def _events(self, job: Job, path: str) -> AsyncGenerator[list[bytes]]:
        call = partial(_call, path=path)
        posting = http.post(self._client, job, call)
        del job  # a stream may last, and a prompt be long
        async with posting as response:
            async for payloads in http.events(response):
                yield payloads


def _call(job: Job, path: str) -> http.Call:
    server, target = SERVERS[job.entry.server], job.target
    base = (target.base_url or DEFAULT_BASE_URL).rstrip("/")
    headers = {}
    if target.api_key:
        headers[server.key_header] = server.key.format(key=target.api_key)
    request = adapted(job.request, job.entry)
    # The Responses API sends its usage unasked, and refuses to be asked.
    ask_usage = job.entry.stream_usage and path != "responses"
    ask_usage = ask_usage and server.takes_stream_options
    body = request.for_upstream(target.model, ask_usage=ask_usage)
    place = server.path.format(path=path, model=quote(target.model, safe=""))
    version = job.entry.api_version or server.api_version
    query = f"?api-version={version}" if version else ""
    return http.Call(f"{base}/{place}{query}", headers, body)
