"""Callers in turn: whom a place goes to, and that none is lost."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import requests

from config.serving.bodies import Bodies
from config.serving.turns import Turns
from config.serving.wsgi_bridge import WSGIBridgeWithTurns
from tests.config.serving.test_server import served, with_lifespan
from tests.running import PATIENCE_S, until


class Callers:
    """Take and leave the places of `turns`, each in a task of its own."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.order: list[str] = []
        self.gate = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    async def come(self, *names: str) -> None:
        for name in names:
            self.tasks.append(asyncio.create_task(self._call(name)))
            await asyncio.sleep(0)

    async def _call(self, name: str) -> None:
        async with self.turns.of(name[0]):
            self.order.append(name)
            await self.gate.wait()

    async def end(self) -> list[str]:
        self.gate.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return self.order


@pytest.mark.parametrize(
    ("places", "order"),
    [(1, "a1 a2 b1 c1 a3 c2 a4"), (2, "a1 a2 a3 b1 c1 a4 c2"), (9, "")],
)
def test_a_place_goes_to_the_callers_in_turn(places, order):
    names = "a1 a2 a3 a4 b1 c1 c2"

    async def run():
        callers = Callers(Turns(places))
        await callers.come(*names.split())
        return await callers.end()

    assert " ".join(asyncio.run(run())) == (order or names)


def test_callers_that_give_up_lose_no_place():
    async def run():
        callers = Callers(Turns(1))
        await callers.come("a1", "b1", "c1", "d1")
        callers.tasks[1].cancel()  # while it waits
        callers.tasks[0].cancel()  # gives its place to c1 …
        await asyncio.sleep(0)
        callers.tasks[2].cancel()  # … which gives up before it runs
        order = await callers.end()
        async with callers.turns.of("e"):
            return order

    assert asyncio.run(run()) == ["a1", "d1"]


def test_an_account_with_many_calls_holds_up_no_other():
    order: list[str] = []
    gate = threading.Event()

    def application(environ, start_response):
        token = environ["HTTP_AUTHORIZATION"]
        environ["account"] = token[0]
        order.append(token)
        gate.wait(PATIENCE_S)
        start_response("200 OK", [])
        return [b""]

    bridge = WSGIBridgeWithTurns(
        application,
        threads=1,
        bodies=Bodies(1_000_000),
        largest_body=lambda _: 1000,
        account_key="account",
    )
    with served(with_lifespan(bridge)) as url, ThreadPoolExecutor(20) as pool:

        def call(token: str) -> None:
            requests.get(url, headers={"Authorization": token}, timeout=PATIENCE_S)

        gate.set()
        for token in ("a1", "a2"):  # two tokens of one account
            call(token)
        gate.clear()
        order.clear()
        calls = [pool.submit(call, "a1")]
        until(lambda: order, "the first call")
        for token in ["a1", "a2"] * 4:
            calls.append(pool.submit(call, token))
            until(lambda: waiting(bridge) == len(calls) - 1, "a call that waits")
        calls.append(pool.submit(call, "b1"))
        until(lambda: waiting(bridge) == 9, "a call that waits")
        gate.set()
        wait(calls, PATIENCE_S)
    bridge.close()
    assert order.index("b1") == 2  # after the call that ran, and one of the account
    assert len(order) == 10


def waiting(bridge: WSGIBridgeWithTurns) -> int:
    return sum(map(len, bridge._turns._waiting.values()))
