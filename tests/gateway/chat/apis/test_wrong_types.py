"""Wrong types in every field of the recorded conversations: a refusal, or a failure of the upstream.

Nothing else is raised, whether the request, the whole answer or one event is odd.
"""

import asyncio
import copy
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from gateway.chat import calls
from gateway.chat.capabilities import require
from gateway.chat.context import ChatContext
from gateway.chat.errors import ChatError
from gateway.chat.request import ModelRequest
from gateway.chat.routes import ROUTES
from gateway.chat.tokens import prompt_length
from gateway.chat.upstreams.base import Call
from gateway.configuration.shapes import SUPPORTS, ModelEntry, Target
from gateway.identity import Caller
from tests.gateway.chat.apis.recorded import PAIRS, api_of

ODD: tuple[Any, ...] = (
    *(None, True, -1, 1.5, 10**30, "", "\ud800", [], {}, [None], [{}], [["a"]]),
    *({"type": ["x"]}, [{"type": "text", "text": 1}], {"error": {"code": "x"}}),
)


def mutants(value: Any) -> Iterator[Any]:
    """Yield copies of JSON, each with something odd at one place."""
    for number, place in enumerate(list(places(value))):
        for odd in ODD[number % 3 :: 3]:
            mutant = copy.deepcopy(value)
            inner = mutant
            for name in place[:-1]:
                inner = inner[name]
            inner[place[-1]] = odd
            yield mutant


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    names = value if isinstance(value, dict) else range(len(value))
    for name in names:
        yield (*place, name)
        if isinstance(value[name], dict | list):
            yield from places(value[name], (*place, name))


class Answering:
    """An upstream that speaks one API, and answers what a test says."""

    def __init__(self, api: str, answer: Any) -> None:
        self.api, self.answer = api, answer

    def apis(self, entry: ModelEntry) -> frozenset[str]:
        return frozenset({self.api})

    async def post(self, *_: Any) -> bytes:
        return json.dumps(self.answer).encode()

    async def stream(self, call: Call) -> AsyncGenerator[list[bytes]]:
        is_named = call.is_native and self.api != "chat"
        for event in self.answer:
            data = json.dumps(event).encode()
            yield [b"data: " + data if is_named else data]


async def answered(path: str, request: Any, upstream: Answering) -> None:
    """Ask an upstream. Raises ChatError."""
    operation = ROUTES[path].operation
    assert operation is not None
    wanted = ModelRequest.parse(json.dumps(request).encode())
    if wanted.model != "model":
        return  # there is no other
    entry = ModelEntry("model", "openai", (), supports=frozenset(SUPPORTS))
    require(entry, operation, wanted)
    prompt_length(wanted.body)
    caller = Caller("acme", "ada")
    context = ChatContext(caller, entry, wanted, "req-7", operation)
    context.begin_call(Target("", "there"))
    if not isinstance(upstream.answer, list):
        await calls.complete(upstream, context)
        return
    stream = await calls.open_stream(upstream, context)
    async for payloads in stream.events:
        stream.feed(payloads)
    stream.end()


@pytest.mark.parametrize("name", PAIRS)
def test_odd_values_are_refused_or_survived(name):
    pair = PAIRS[name]
    path, api = pair["path"], api_of(pair)

    async def run() -> None:
        for request in mutants(pair["request"]):
            with suppress(ChatError):
                await answered(path, request, Answering(api, pair["answer"]))
        for answer in mutants(pair["answer"]):
            with suppress(ChatError):
                await answered(path, pair["request"], Answering(api, answer))

    asyncio.run(run())
