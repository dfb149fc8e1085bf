"""One call of a target: passed on if its server speaks the request's API, else translated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.chat.apis.base import translating
from gateway.chat.apis.deltas import Reader, Writer
from gateway.chat.apis.messages.reader import MessagesReader
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.reader import ChatReader
from gateway.chat.context import ChatContext
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.request import dump
from gateway.chat.streams import Stream, TranslatedStream
from gateway.chat.upstreams.anthropic.request import translate
from gateway.chat.upstreams.anthropic.turns import PLACE
from gateway.chat.upstreams.base import Call, Upstream
from gateway.chat.upstreams.servers import OPENAI, SERVERS
from webhooks_core.network.deadlines import within

Body = Mapping[str, Any]
# What requests of other APIs are translated to, in this order: paths and readers of answers.
PATHS: Mapping[str, str] = {"chat": "chat/completions", "messages": "messages"}
READERS: Mapping[str, type[Reader]] = {"chat": ChatReader, "messages": MessagesReader}
LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
OPENAI_HOSTS = ("api.openai.com", ".openai.azure.com")
ASKED = b',"stream_options":{"include_usage":true}}'


async def complete(upstream: Upstream, context: ChatContext) -> bytes:
    """Return the body for the client. Raises as Upstream's methods do."""
    operation, apis = context.operation, upstream.apis(context.endpoint)
    if operation.api in apis:
        return operation.passed(context, await upstream.post(_native(context)))
    if (answer := operation.without_call(context)) is not None:
        return answer
    call, writer = _translated(apis, context)
    value = chunks.parse(await upstream.post(call))
    for delta in READERS[call.api]().whole(value):
        context.note(delta)
        writer.add(delta)
    return chunks.dump(writer.whole())


async def open_stream(upstream: Upstream, context: ChatContext) -> Stream:
    """Return a stream once its first chunk has come. Raises as Upstream's methods do."""
    stream = _begun(upstream, context)
    try:
        with within(context.endpoint.timeouts.first_byte_s):
            await stream.read_first_chunk()
    except BaseException:
        await stream.events.aclose()
        raise
    context.first_chunk_s = context.elapsed()
    return stream


def _begun(upstream: Upstream, context: ChatContext) -> Stream:
    operation, apis = context.operation, upstream.apis(context.endpoint)
    if operation.api in apis:
        call, stream = _native(context), operation.passing(context)
    else:
        call, writer = _translated(apis, context)
        stream = TranslatedStream(context, READERS[call.api](), writer)
    stream.events = upstream.stream(call)
    return stream


# ── What a server gets ──────────────────────────────────────────────────────────────


def _native(context: ChatContext) -> Call:
    """Return the request for a server that speaks its API: as it was sent, if nothing has to differ.

    Raises InvalidValueError for a body that is nested too deeply to be written again.
    """
    operation, request, model = context.operation, context.request, context.target.model
    asks_usage = operation.path == PATHS["chat"] and _asks_usage(context)
    body = _adapted(operation.own_body(context), context)
    if body is not request.body or (asks_usage and "stream_options" in body):
        raw = _written(body, model, asks_usage=asks_usage)
    else:
        try:
            raw = chunks.with_model(request.raw, body, model)
        except ValueError as error:
            raise InvalidValueError("The body is nested too deeply.") from error
        raw = raw.rstrip()[:-1] + ASKED if asks_usage else raw
    return Call(context, operation.api, operation.path, raw)


def _translated(apis: frozenset[str], context: ChatContext) -> tuple[Call, Writer]:
    """Return a call of a server of another API, and what writes its answer.

    Raises InvalidValueError, UnsupportedRequestError.
    """
    api = next((name for name in PATHS if name in apis), None)
    if api is None:
        raise UnsupportedRequestError(context.operation.action)
    with translating("The request"):
        chat, writer = context.operation.translate(context)
        body = _chat(chat, context) if api == "chat" else _messages(chat, context)
    return Call(context, api, PATHS[api], body), writer


def _chat(chat: dict[str, Any], context: ChatContext) -> bytes:
    """Return the body for a server of OpenAI's shape."""
    entry, target = context.endpoint, context.target
    for message in chat["messages"]:
        for block in message.get("thinking_blocks", ()):
            for name in PLACE:  # which other servers do not know
                block.pop(name, None)
    if entry.supports is not None and "reasoning" not in entry.supports:
        chat.pop("reasoning_effort", None)
    host = urlsplit(target.base_url).hostname or OPENAI_HOSTS[0]
    is_openai = SERVERS[entry.server].is_openai or host.endswith(OPENAI_HOSTS)
    if LIMIT in chat and is_openai:
        chat[NEW_LIMIT] = chat.pop(LIMIT)
    body = _adapted(chat, context)
    return _written(body, target.model, asks_usage=_asks_usage(context))


def _messages(chat: Body, context: ChatContext) -> bytes:
    """Return the body for a server of Anthropic's."""
    entry = context.endpoint
    kept = {
        name: value for name, value in chat.items() if name not in entry.drop_params
    }
    message = translate(
        kept, model=context.target.model, entry=entry.name, thinking=entry.thinking
    )
    return dump(message | entry.extra_body)


def _asks_usage(context: ChatContext) -> bool:
    entry = context.endpoint
    is_known = entry.stream_usage and SERVERS[entry.server].takes_stream_options
    return is_known and context.request.stream


def _adapted(body: Body, context: ChatContext) -> Body:
    """Return a body without the fields that the entry leaves out, and with those that it adds."""
    entry, server = context.endpoint, SERVERS[context.endpoint.server]
    dropped, added, names = entry.drop_params, entry.extra_body, server.renamed
    if not (dropped or added or server is not OPENAI):
        return body
    kept = {
        names.get(name, name): value
        for name, value in body.items()
        if name not in dropped
        and names.get(name) not in body
        and (server.takes_stream_options or name != "stream_options")
    }
    return kept | added


def _written(body: Body, model: str, *, asks_usage: bool) -> bytes:
    """Return a body as JSON with the upstream's own name of the model."""
    body = {**body, "model": model}
    if asks_usage:
        options = body.get("stream_options")
        if options is None or isinstance(options, dict):
            body["stream_options"] = {**(options or {}), "include_usage": True}
    return dump(body)
