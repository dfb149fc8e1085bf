"""MCP clients of the benchmark, in a process of their own: each calls again once it is answered.

Run as `python -m benchmarks.mcp.clients PORT TOKEN CLIENTS SECONDS`; it prints what each tool took.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.chat.load import WARM_UP_S, Client, Taken

CALLS: dict[str, dict[str, Any]] = {
    "list_recordings": {},
    "get_transcript": {"audio_id": "aud_0"},
    "search_recordings": {"query": "lighthouse w1"},
}


def post(port: int, path: str, headers: Mapping[str, str], body: object) -> bytes:
    """Return a request of HTTP with a JSON body."""
    content = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + content


def call(port: int, token: str, tool: str) -> bytes:
    params = {"name": tool, "arguments": CALLS[tool]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    return post(port, "/mcp", headers, body)


async def run(port: int, token: str, count: int, seconds: float) -> dict[str, Taken]:
    """Return what each tool took of so many clients at once."""
    loop = asyncio.get_running_loop()
    taken = {tool: Taken() for tool in CALLS}
    clients = []
    for number in range(count):
        tool = list(CALLS)[number % len(CALLS)]
        client = Client(call(port, token, tool), taken[tool])
        await loop.create_connection(lambda c=client: c, "127.0.0.1", port)  # type: ignore[misc]
        clients.append(client)
    await asyncio.sleep(WARM_UP_S + seconds)
    for client in clients:
        client.stop()
    await asyncio.wait([client.done for client in clients], timeout=60)
    return taken


def main(port: str, token: str, count: str, seconds: str) -> None:
    taken = asyncio.run(run(int(port), token, int(count), float(seconds)))
    figures = {
        tool: {"latencies": each.latencies, "failures": each.failures}
        for tool, each in taken.items()
    }
    print(json.dumps(figures))  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    main(*sys.argv[1:])
