"""The rules for answers in a stream: its text is held back until no match can begin in it.

The events are those of the upstream: chunks of OpenAI's shape, or what passes to the client as it
is. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.chat.core import chunks
from gateway.chat.core.json_parts import member
from gateway.chat.core.sse import DONE, data_of
from gateway.chat.policies.checks import Checks
from gateway.chat.policies.chunk_texts import (
    Channel,
    ChunkTexts,
    Text,
    Write,
    begins_call,
)
from gateway.chat.policies.rules import Rule
from gateway.configuration.content import ANSWER

# So many characters are held back: a match that is not longer is found wherever it is cut.
HOLD = 256
# A match that is longer than this is masked in parts.
MAX_HELD = 4 * HOLD
# What stands before the text that is searched, for patterns about neighbours.
BEFORE = 64
# The texts of a message's delta.
MESSAGE_FIELDS = ("text", "thinking", "partial_json")
# What comes within a text of a message or of a response, and says nothing of its end.
WITHIN = (
    *("ping", "citations_delta"),
    *("keepalive", "response.in_progress", "response.output_text.annotation.added"),
)


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


@dataclass(slots=True)
class Held:
    """A text that is not released yet: how it is written, and when its pieces came."""

    window: Window
    write: Write
    began_at: int
    added_at: int = 0


class StreamGuard:
    """Feeds on the upstream's events and returns those that may be sent."""

    def __init__(self, checks: Checks, rules: list[Rule]) -> None:
        self._checks, self._rules = checks, rules
        self._held: dict[Channel, Held] = {}
        self.characters = self._pieces = 0

    def feed(self, payloads: list[bytes]) -> list[bytes]:
        """Return what can be sent. Raises PolicyDeniedError, UpstreamServiceError."""
        events: list[bytes] = []
        for payload in payloads:
            if payload == DONE:
                events += [*self._flush(), payload]
            else:
                events += self._pass(payload)
        return events

    def end(self) -> list[bytes]:
        """Return what is held, when the stream has ended. Raises PolicyDeniedError."""
        return [*self._flush()]

    def _pass(self, payload: bytes) -> Iterator[bytes]:
        raise NotImplementedError

    def _text(self, new: Text) -> Iterator[bytes]:
        """Add a text. Of the events of a text the last one waits for what is held.

        Servers send texts side by side: choices, calls, one reasoning in two forms. So another
        text of the same choice has ended only if nothing of it has come since this one began.
        """
        self.characters += len(new.text)
        self._checks.check_size(self.characters, self._rules, ANSWER)
        self._pieces += 1
        held = self._held.get(new.channel)
        if held is None and new.is_last:
            yield from self._flush(new.channel[0])
            yield new.write(self._checks.text(new.text, self._rules, ANSWER))
            return
        if held is None:
            window = Window(self._checks, self._rules)
            held = self._held[new.channel] = Held(window, new.write, self._pieces)
        if released := held.window.push(new.text):
            for channel in self._ended_before(new.channel, held.began_at):
                yield from self._release(channel)
            yield held.write(released)
        held.write, held.added_at = new.write, self._pieces
        if new.is_last:
            yield from self._release(new.channel)

    def _ended_before(self, new: Channel, began_at: int) -> list[Channel]:
        return [
            channel
            for channel, held in self._held.items()
            if channel[0] == new[0] and channel != new and held.added_at < began_at
        ]

    def _flush(self, group: str | None = None) -> Iterator[bytes]:
        """Yield what is held of a choice, item or block; without one, of all."""
        for channel in list(self._held):
            if group is None or channel[0] == group:
                yield from self._release(channel)

    def _release(self, channel: Channel) -> Iterator[bytes]:
        held = self._held.pop(channel)
        if rest := held.window.flush():
            yield held.write(rest)

    def _whole(self, value: Any) -> Any:
        """Return an event whose texts are whole, with what rules mask."""
        return self._checks.masked(value, self._rules, ANSWER)


class ChunkGuard(StreamGuard):
    """Chunks of a chat completion. Each text becomes a chunk of its own."""

    def __init__(self, checks: Checks, rules: list[Rule]) -> None:
        super().__init__(checks, rules)
        self._calls: set[Channel] = set()

    def _pass(self, payload: bytes) -> Iterator[bytes]:
        value = chunks.parse(payload)
        choices = value.get("choices")
        if not isinstance(choices, list):
            yield payload
            return
        head = {n: v for n, v in value.items() if n not in ("choices", "usage")}
        ends = any(member(choice, "finish_reason") for choice in choices)
        if ends and _has_texts(choices):
            # Calls begin before their texts, and end behind them.
            said = _each(choices, finish_reason=None)
            ended = _each(choices, delta={}, logprobs=None)
            yield from self._pass(chunks.dump({**head, "choices": said}))
            yield from self._pass(chunks.dump({**value, "choices": ended}))
            return
        taken = ChunkTexts(head, self._calls)
        rest = [taken.take(choice) for choice in choices]
        for group in taken.ended:
            yield from self._flush(group)
        if not choices and value.get("usage"):  # with it a stream ends
            yield from self._flush()
        if not taken.texts:
            new = self._whole(value)
            yield payload if new is value else chunks.dump(new)
        elif value.get("usage") or any(map(_says_more, rest)):
            yield chunks.dump(self._whole({**value, "choices": rest}))
        for text in taken.texts:
            yield from self._text(text)


def _has_texts(choices: list[Any]) -> bool:
    taken = ChunkTexts({}, set())
    for choice in choices:
        taken.take(choice)
    return bool(taken.texts)


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
                    place = str(event.get("index")), name
                    yield from self._text(Text(place, text, write))
                    return
        if event.get("type") not in WITHIN and member(delta, "type") not in WITHIN:
            yield from self._flush()
        new = self._whole(event)
        yield payload if new is event else _named(new)


class ResponseGuard(StreamGuard):
    """Events of a response that passes as it is."""

    def _pass(self, payload: bytes) -> Iterator[bytes]:
        event = chunks.parse(payload)
        kind, text = event.get("type"), event.get("delta")
        if isinstance(kind, str) and kind.endswith(".delta") and isinstance(text, str):
            yield from self._text(Text(_place(event), text, _response_writer(event)))
            return
        if kind not in WITHIN:
            place = event.get("output_index")
            yield from self._flush(None if place is None else str(place))
        new = self._whole(event)
        yield payload if new is event else chunks.dump(new)


def _place(event: Mapping[str, Any]) -> Channel:
    names = ("output_index", "type", "content_index", "summary_index")
    return tuple(str(event.get(name)) for name in names)


def _response_writer(event: Mapping[str, Any]) -> Write:
    without: dict[str, Any] = {"logprobs": []} if "logprobs" in event else {}
    return lambda new: chunks.dump({**event, "delta": new} | without)


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


def _message_writer(
    event: Mapping[str, Any], delta: Mapping[str, Any], name: str
) -> Write:
    return lambda text: _named({**event, "delta": {**delta, name: text}})


def _named(event: Mapping[str, Any]) -> bytes:
    return b"event: " + str(event["type"]).encode() + b"\ndata: " + chunks.dump(event)


def _says_more(choice: Any) -> bool:
    """Return True if a choice without its texts says anything else."""
    delta = member(choice, "delta")
    if not isinstance(delta, dict):
        return True
    others = [value for name, value in delta.items() if name != "tool_calls"]
    calls = delta.get("tool_calls")
    return any(others) or any(
        map(begins_call, calls if isinstance(calls, list) else ())
    )
