"""An upstream on a real socket that does whatever a test says."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.connections import has_read
from tests.gateway.chat.loops import Loop


@dataclass
class Received:
    """One request that reached the upstream."""

    path: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Script = Callable[[Received], Awaitable[None]]
NEVER = 3600.0  # a wait that no test outlasts: the client or the end of the test cuts it off


@dataclass
class MockUpstream:
    """A bare HTTP/1.1 server; `script` answers, byte by byte if it likes."""

    loop: Loop
    script: Script | None = None
    requests: list[Received] = field(default_factory=list)
    hung_up: list[str] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def start(self, ssl: Any = None) -> None:
        self._server = self.loop.run(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=ssl, limit=2**26)
        )

    def reset(self, script: Script) -> None:
        """Forget what an earlier test did."""
        self.script, self.connections = script, 0
        self.requests, self.hung_up = [], []

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        self.open += 1
        self._writers.add(writer)
        try:
            while (request := await _read(reader, writer)) is not None:
                self.requests.append(request)
                await self._answer(request, reader)
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self._writers.discard(writer)

    async def _answer(self, request: Received, reader: asyncio.StreamReader) -> None:
        """Run the script, and note when the gateway hangs up meanwhile."""
        assert self.script is not None
        script = asyncio.ensure_future(self.script(request))
        gone = asyncio.ensure_future(_gone(reader))
        done, _ = await asyncio.wait({script, gone}, return_when="FIRST_COMPLETED")
        if script not in done:
            self.hung_up.append(request.path)
            script.cancel()
            raise ConnectionResetError
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        try:
            script.result()
        except ConnectionError:
            self.hung_up.append(request.path)
            raise

    def stop(self) -> None:
        """Stop listening, cut off every connection and wait for its end."""

        async def close() -> None:
            assert self._server is not None
            self._server.close()
            for writer in self._writers:
                writer.transport.abort()
            while self._writers:  # noqa: ASYNC110 - each removes itself
                await asyncio.sleep(0)

        self.loop.run(close())


async def _gone(reader: asyncio.StreamReader) -> None:
    # A client that leaves unread bytes resets the connection: then there is no end of the stream.
    while not (reader.at_eof() or reader.exception() or reader._buffer):  # type: ignore[attr-defined]  # noqa: ASYNC110 - a look, not a wait
        await asyncio.sleep(0.005)


async def _read(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Received | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in lines if line)
    headers = {name.lower(): value for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(first.split()[1], headers, body, writer)


def head(status: int = 200, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def in_chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def answers(value: Any, status: int = 200, **headers: str) -> Script:
    """A JSON answer; bytes go as they are."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()

    async def script(request: Received) -> None:
        request.writer.write(
            head(status, Content_Length=str(len(body)), **headers) + body
        )
        await request.writer.drain()

    return script


def sends(
    *parts: bytes | float | asyncio.Event | Callable[[], object] | None,
) -> Script:
    """A chunked stream: bytes are written, a number or an event waits, a function is called.

    None cuts the connection off.
    """

    async def script(request: Received) -> None:
        writer = request.writer
        writer.write(
            head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        )
        for part in parts:
            if part is None:
                writer.transport.abort()
                return
            if isinstance(part, float):
                await asyncio.sleep(part)
            elif isinstance(part, asyncio.Event):
                await part.wait()
            elif callable(part):
                part()
            else:
                assert part, "an empty chunk ends the body"
                writer.write(in_chunks(part))
                await writer.drain()
                await asyncio.sleep(0.0005)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return script


def raw(*parts: bytes) -> Script:
    """Parts that are read one by one, and the end of the connection."""

    async def script(request: Received) -> None:
        for part in parts:
            request.writer.write(part)
            connection = request.writer.get_extra_info("socket")
            while not has_read(connection):  # noqa: ASYNC110 - the kernel tells nobody
                await asyncio.sleep(0.002)
        request.writer.close()

    return script


def event(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"data: " + data + b"\n\n"


DONE = event(b"[DONE]")
HEAD = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "upstream-model",
    "system_fingerprint": None,
}


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> Any:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**HEAD, "choices": [choice], **more}


USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
USAGE_CHUNK = {**HEAD, "choices": [], "usage": USAGE}
STREAM = (event(chunk("Hel")), event(chunk("lo")), event(chunk(finish="stop")))
WHOLE_STREAM = (*STREAM, event(USAGE_CHUNK), DONE)


def calling(part: Any) -> bytes:
    return event(
        {**chunk(), "choices": [{"index": 0, "delta": {"tool_calls": [part]}}]}
    )


# A call of a tool whose arguments come in a part of their own.
TOOL_STREAM = (
    calling(
        {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "tide", "arguments": ""},
        }
    ),
    calling({"index": 0, "function": {"arguments": '{"at": "Brest"}'}}),
    event(chunk(finish="tool_calls")),
    DONE,
)
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "upstream-model",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": USAGE,
}


def greeting(*, stream: bool) -> Script:
    """The same answer as a stream or whole."""
    return sends(*WHOLE_STREAM) if stream else answers(COMPLETION)
