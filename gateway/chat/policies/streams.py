"""The rules for answers in a stream: its text is held back until no match can begin in it.

The events are those of the upstream: chunks of OpenAI's shape, or what passes to the client as it
is. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gateway.chat.core import chunks
from gateway.chat.core.json_parts import member
from gateway.chat.core.sse import DONE, data_of
from gateway.chat.policies.checks import Checks
from gateway.chat.policies.rules import Rule
from gateway.configuration.content import ANSWER

# So many characters are held back: a match that is not longer is found wherever it is cut.
HOLD = 256
# A match that is longer than this is masked in parts.
MAX_HELD = 4 * HOLD
# What stands before the text that is searched, for patterns about neighbours.
BEFORE = 64
# The texts of a chunk's delta.
FIELDS = ("reasoning_content", "reasoning", "content", "refusal")
# The texts of a message's delta.
MESSAGE_FIELDS = ("text", "thinking", "partial_json")

# Returns an event with a text.
Write = Callable[[str], bytes]


class Window:
    """The end of one text of a stream, which is not released yet."""

    def __init__(self, checks: Checks, rules: list[Rule]) -> None:
        self._checks, self._rules = checks, rules
        self._before, self._held = "", ""

    def push(self, text: str) -> str:
        """Return what can be released. Raises PolicyDeniedError."""
        self._held += text
        return self._release(len(self._held) - HOLD)

    def flush(self) -> str:
        """Return all that is held. Raises PolicyDeniedError."""
        return self._release(len(self._held))

    def _release(self, count: int) -> str:
        text, begin = self._before + self._held, len(self._before)
        spans = self._checks.spans(text, self._rules, ANSWER)
        if count <= 0:
            return ""
        cut = begin + count
        for start, end, _ in spans:
            if start < cut < end and len(text) - start <= MAX_HELD:
                cut = start
        if cut <= begin:
            return ""
        parts, behind = [], begin
        for start, end, rule in spans:
            if end > begin and start < cut:
                parts += [text[behind : max(start, behind)], self._checks.mark(rule)]
                behind = min(end, cut)
        self._before, self._held = text[max(0, cut - BEFORE) : cut], text[cut:]
        return "".join([*parts, text[behind:cut]])


class StreamGuard:
    """Feeds on the upstream's events and returns those that may be sent."""

    def __init__(self, checks: Checks, rules: list[Rule]) -> None:
        self._checks, self._rules = checks, rules
        self._channel: Any = None
        self._window = Window(checks, rules)
        self._write: Write | None = None
        self._size = 0

    def feed(self, payloads: list[bytes]) -> list[bytes]:
        """Return what can be sent. Raises PolicyDeniedError, UpstreamServiceError."""
        return [event for payload in payloads for event in self._pass(payload)]

    def end(self) -> list[bytes]:
        """Return what is held, when the stream has ended. Raises PolicyDeniedError."""
        return [*self._flush()]

    def _pass(self, payload: bytes) -> Iterator[bytes]:
        raise NotImplementedError

    def _text(self, channel: Any, text: str, write: Write) -> Iterator[bytes]:
        """Add a text. Of the events of a text the last one waits for what is held."""
        if channel != self._channel:
            yield from self._flush()
            self._channel, self._window = channel, Window(self._checks, self._rules)
        self._size += len(text)
        self._checks.check_size(self._size, self._rules, ANSWER)
        if released := self._window.push(text):
            yield (self._write or write)(released)
        self._write = write

    def _flush(self) -> Iterator[bytes]:
        if self._write is not None:
            if rest := self._window.flush():
                yield self._write(rest)
            self._channel = self._write = None

    def _whole(self, value: Any) -> Any:
        """Return an event whose texts are whole, with what rules mask."""
        return self._checks.masked(value, self._rules, ANSWER)


class ChunkGuard(StreamGuard):
    """Chunks of a chat completion. Each text becomes a chunk of its own."""

    def _pass(self, payload: bytes) -> Iterator[bytes]:
        if payload == DONE:
            yield from self._flush()
            yield payload
            return
        value = chunks.parse(payload)
        choices = value.get("choices")
        if not isinstance(choices, list):
            yield payload
            return
        head = {n: v for n, v in value.items() if n not in ("choices", "usage")}
        texts: list[tuple[Any, str, Write]] = []
        rest = [_without_texts(choice, head, texts) for choice in choices]
        is_finish, usage = any(map(_is_end, rest)), bool(value.get("usage"))
        if is_finish and texts:  # calls begin before their texts, and end behind them
            said = _each(choices, finish_reason=None)
            ended = _each(choices, delta={}, logprobs=None)
            yield from self._pass(chunks.dump({**head, "choices": said}))
            yield from self._pass(chunks.dump({**value, "choices": ended}))
            return
        # Some servers send the usage with each text.
        if is_finish or (usage and not texts) or any(map(_has_calls, rest)):
            yield from self._flush()
        if not texts:
            yield payload
        elif usage or any(map(_says_more, rest)):
            yield chunks.dump(self._whole({**value, "choices": rest}))
        for channel, text, write in texts:
            yield from self._text(channel, text, write)


def _each(choices: list[Any], **fields: Any) -> list[Any]:
    return [c | fields if isinstance(c, dict) else c for c in choices]


class MessageGuard(StreamGuard):
    """Events of a message that passes as it is, without their ends."""

    def _pass(self, payload: bytes) -> Iterator[bytes]:
        data = data_of(payload)
        if data is None:
            yield payload
            return
        event = chunks.parse(data)
        delta = event.get("delta")
        if event.get("type") == "content_block_delta" and isinstance(delta, dict):
            for name in MESSAGE_FIELDS:
                if isinstance(text := delta.get(name), str):
                    write = _message_writer(event, delta, name)
                    yield from self._text((event.get("index"), name), text, write)
                    return
        if event.get("type") != "ping":
            yield from self._flush()
        new = self._whole(event)
        yield payload if new is event else _named(new)


class ResponseGuard(StreamGuard):
    """Events of a response that passes as it is."""

    def _pass(self, payload: bytes) -> Iterator[bytes]:
        if payload == DONE:
            yield from self._flush()
            yield payload
            return
        event = chunks.parse(payload)
        kind, text = event.get("type"), event.get("delta")
        if isinstance(kind, str) and kind.endswith(".delta") and isinstance(text, str):
            without: dict[str, Any] = {"logprobs": []} if "logprobs" in event else {}
            places = (event.get("output_index"), event.get("content_index"))
            yield from self._text(
                (kind, *map(str, places)),
                text,
                lambda new: chunks.dump({**event, "delta": new} | without),
            )
            return
        yield from self._flush()
        new = self._whole(event)
        yield payload if new is event else chunks.dump(new)


GUARDS: Mapping[str, type[StreamGuard]] = {
    "chunks": ChunkGuard,
    "messages": MessageGuard,
    "responses": ResponseGuard,
}


def guard_of(checks: Checks | None, shape: str) -> StreamGuard | None:
    """Return what applies the rules to a stream of a shape; None if there are none."""
    if checks is None:
        return None
    rules = checks.answer_rules(passes_through=shape == "messages")
    return GUARDS[shape](checks, rules) if rules else None


def _without_texts(
    choice: Any, head: Mapping[str, Any], texts: list[tuple[Any, str, Write]]
) -> Any:
    """Return a choice without its texts, which are added to the list with their places."""
    delta = member(choice, "delta")
    if not isinstance(delta, dict):
        return choice
    index, rest = choice.get("index", 0), dict(delta)
    for name in FIELDS:
        if isinstance(text := delta.get(name), str) and text:
            del rest[name]
            texts.append(((str(index), name), text, _chunk_writer(head, index, name)))
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        rest["tool_calls"] = [
            _without_arguments(call, head, index, texts) for call in calls
        ]
    # Probabilities repeat the text, token by token.
    return {name: choice[name] for name in choice if name != "logprobs"} | {
        "delta": rest
    }


def _without_arguments(
    call: Any,
    head: Mapping[str, Any],
    index: Any,
    texts: list[tuple[Any, str, Write]],
) -> Any:
    text = member(call, "function", "arguments")
    if not isinstance(text, str) or not text:
        return call
    number = call.get("index", 0)

    def write(new: str) -> bytes:
        part = {"index": number, "function": {"arguments": new}}
        choice = {"index": index, "delta": {"tool_calls": [part]}}
        return chunks.dump({**head, "choices": [{**choice, "finish_reason": None}]})

    texts.append(((str(index), "call", str(number)), text, write))
    return {**call, "function": {**call["function"], "arguments": ""}}


def _chunk_writer(head: Mapping[str, Any], index: Any, name: str) -> Write:
    def write(text: str) -> bytes:
        choice = {"index": index, "delta": {name: text}, "finish_reason": None}
        return chunks.dump({**head, "choices": [choice]})

    return write


def _message_writer(
    event: Mapping[str, Any], delta: Mapping[str, Any], name: str
) -> Write:
    return lambda text: _named({**event, "delta": {**delta, name: text}})


def _named(event: Mapping[str, Any]) -> bytes:
    return b"event: " + str(event["type"]).encode() + b"\ndata: " + chunks.dump(event)


def _is_end(choice: Any) -> bool:
    return bool(member(choice, "finish_reason"))


def _has_calls(choice: Any) -> bool:
    """Return True if a part of a call has its id or its name: there it begins."""
    calls = member(choice, "delta", "tool_calls")
    return any(
        member(call, "function", "name") or member(call, "id")
        for call in (calls if isinstance(calls, list) else ())
    )


def _says_more(choice: Any) -> bool:
    """Return True if a choice without its texts says anything else."""
    delta = member(choice, "delta")
    if not isinstance(delta, dict):
        return True
    others = [value for name, value in delta.items() if name != "tool_calls"]
    return any(others) or _has_calls(choice)
