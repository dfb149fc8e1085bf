"""One call of a target: passed on if its server speaks the request's API, else translated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.chat.apis.base import translating
from gateway.chat.apis.deltas import Reader, Writer
from gateway.chat.apis.messages.reader import MessagesReader
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.reader import ChatReader
from gateway.chat.errors import UnsupportedRequestError
from gateway.chat.streams import Stream, TranslatedStream
from gateway.chat.upstreams.anthropic.request import translate
from gateway.chat.upstreams.base import Call, Sent, Upstream
from gateway.chat.upstreams.bodies import own_body, translated_body
from webhooks_core.network.deadlines import within

# What requests of other APIs are translated to, in this order: paths and readers of answers.
PATHS: Mapping[str, str] = {"chat": "chat/completions", "messages": "messages"}
READERS: Mapping[str, type[Reader]] = {"chat": ChatReader, "messages": MessagesReader}


async def complete(upstream: Upstream, call: Call) -> bytes:
    """Return the body for the client. Raises as Upstream's methods do."""
    context, apis = call.context, upstream.apis(call.entry)
    operation = context.operation
    if operation.api in apis:
        body = await upstream.post(call, _native(call))
        return operation.passed(context, body)
    if (answer := operation.without_call(context)) is not None:
        return answer
    sent, writer = _translated(apis, call)
    value = chunks.parse(await upstream.post(call, sent))
    for delta in READERS[sent.api]().whole(value):
        context.note(delta)
        writer.add(delta)
    return chunks.dump(writer.whole())


async def open_stream(upstream: Upstream, call: Call) -> Stream:
    """Return a stream once its first chunk has come. Raises as Upstream's methods do."""
    stream = _begun(upstream, call)
    try:
        with within(call.entry.timeouts.first_byte_s):
            await stream.read_first_chunk()
    except BaseException:
        await stream.events.aclose()
        raise
    call.context.first_chunk_s = call.context.elapsed()
    return stream


def _begun(upstream: Upstream, call: Call) -> Stream:
    context, apis = call.context, upstream.apis(call.entry)
    operation = context.operation
    if operation.api in apis:
        sent, stream = _native(call), operation.passing(context)
    else:
        sent, writer = _translated(apis, call)
        reader, is_chat = READERS[sent.api](), operation.api == "chat"
        stream = TranslatedStream(
            reader, writer, context.log_delta, done_completes=is_chat
        )
    stream.events = upstream.stream(call, sent)
    return stream


def _native(call: Call) -> Sent:
    operation = call.context.operation
    changed = operation.own_body(call)
    asks_usage = operation.path == PATHS["chat"] and _asks_usage(call)
    body = own_body(call, changed, asks_usage=asks_usage)
    return Sent(operation.api, operation.path, body, is_native=True)


def _translated(apis: frozenset[str], call: Call) -> tuple[Sent, Writer]:
    """Return what is sent to a server of another API, and what writes its answer.

    Raises InvalidValueError, UnsupportedRequestError.
    """
    with translating("The request"):
        chat, writer = call.context.operation.translate(call)
        return _sent(apis, call, chat), writer


def _sent(apis: frozenset[str], call: Call, chat: dict[str, Any]) -> Sent:
    """Return a chat request in the first of the APIs that the server speaks."""
    entry = call.entry
    if "chat" in apis:
        body = translated_body(call, chat, asks_usage=_asks_usage(call))
        return Sent("chat", PATHS["chat"], body, is_native=False)
    if "messages" not in apis:
        raise UnsupportedRequestError(call.context.operation.action)
    dropped = {
        name: value for name, value in chat.items() if name not in entry.drop_params
    }
    message = translate(
        dropped, model=call.target.model, entry=entry.name, thinking=entry.thinking
    )
    body = chunks.dump(message | entry.extra_body)
    return Sent("messages", PATHS["messages"], body, is_native=False)


def _asks_usage(call: Call) -> bool:
    return call.entry.stream_usage and call.context.request.stream
