"""Bodies that arrive: how much room they take together, and which of them gives way."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys

import pytest

from config.serving.bodies import Bodies, Body, ClientGoneError


class Client:
    """Sends a body in parts, each when the test says so."""

    def __init__(self, bodies: Bodies) -> None:
        self._messages: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        receiving = bodies.receive(self._messages.get, limit=5000)
        self.body: asyncio.Task[Body] = asyncio.create_task(receiving)

    async def send(self, size: int, *, more: bool) -> None:
        part = {"type": "http.request", "body": b"x" * size, "more_body": more}
        await self._send(part)

    async def leave(self) -> None:
        await self._send({"type": "http.disconnect"})

    async def _send(self, message: dict[str, object]) -> None:
        await self._messages.put(message)
        for _ in range(5):  # until the task has taken it and waits for the next
            await asyncio.sleep(0)


def test_the_body_that_has_been_arriving_longest_gives_way():
    async def run() -> None:
        bodies = Bodies(1000)
        oldest, other, newest = (Client(bodies) for _ in range(3))
        for client in (oldest, other):
            await client.send(400, more=True)
        await newest.send(300, more=True)
        with pytest.raises(TimeoutError):
            await oldest.body
        await newest.send(300, more=False)
        assert not other.body.done()
        with await newest.body as body:
            assert (body.length, body.file.read()) == (600, b"x" * 600)

    asyncio.run(run())


def test_a_body_without_room_keeps_its_length_and_fails_when_it_is_read():
    async def run() -> None:
        bodies = Bodies(1000)
        first, second, third = (Client(bodies) for _ in range(3))
        for client in (first, second):
            await client.send(300, more=True)
            await client.send(300, more=False)
        with await first.body, await second.body as body:
            assert body.length == 600
            with pytest.raises(OSError, match="space") as raised:
                body.file.read()
            assert raised.value.errno == errno.ENOSPC
        await third.send(900, more=True)
        await third.send(100, more=False)
        with await third.body as body:  # all of the room is free again
            assert len(body.file.read()) == 1000

    asyncio.run(run())


def test_a_body_over_its_limit_takes_no_room():
    async def run() -> None:
        bodies = Bodies(6000)
        large, other = Client(bodies), Client(bodies)
        for _ in range(4):
            await large.send(2000, more=True)
        await other.send(5000, more=True)
        await other.send(0, more=False)
        await large.send(0, more=False)
        with await large.body as body:
            assert (body.length, body.file.read()) == (8000, b"")
        with await other.body as body:
            assert len(body.file.read()) == 5000

    asyncio.run(run())


def test_a_client_that_leaves_gives_its_room_back():
    async def run() -> None:
        bodies = Bodies(1000)
        for _ in range(3):
            client = Client(bodies)
            await client.send(900, more=True)
            await client.leave()
            with pytest.raises(ClientGoneError):
                await client.body

    asyncio.run(run())


@pytest.mark.parametrize("part", [100, 5000, 70_000])
def test_a_body_that_does_not_fit_on_the_disk_fails_when_it_is_read(part):
    """Also when the file still holds back what it could not write."""
    asked = f"""
import resource, signal
from config.serving.bodies import SpooledBody
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
with SpooledBody(50_000) as body:
    for _ in range(200_000 // {part}):
        body.store(b"x" * {part})
    body.rewind()
    try:
        body.read(1)
    except OSError as error:
        print(error.strerror)
"""
    command = [sys.executable, "-c", asked]
    own = dict(os.environ)
    own.pop("COVERAGE_PROCESS_CONFIG", None)  # its file would not fit either
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env=own
    )
    assert (ended.stdout, ended.stderr) == ("File too large\n", "")
