"""The texts of a chunk of OpenAI's shape, wherever servers put them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.chat.core import chunks
from gateway.chat.core.json_parts import member

# Where a text of a stream stands. The first member is its choice, item or block.
Channel = tuple[str, ...]
# Returns an event with a text.
Write = Callable[[str], bytes]

# The texts of a delta.
FIELDS = ("reasoning_content", "reasoning", "content", "refusal")
# The objects of a delta that have a text.
OBJECTS = {"function_call": "arguments", "audio": "transcript"}
# The objects of a call that have a text.
CALLS = {"function": "arguments", "custom": "input"}
# The lists of a delta: Mistral's of content, OpenRouter's and LiteLLM's of reasoning.
LISTS = ("content", "reasoning_details", "thinking_blocks")
# The texts of a part in a list. Mistral's `thinking` is a list of parts itself.
PARTS = ("text", "summary", "thinking")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a text; nothing of the text follows the last one, which a server signs."""

    channel: Channel
    text: str
    write: Write
    is_last: bool = False


@dataclass(slots=True)
class ChunkTexts:
    """Takes the texts out of the choices of a chunk, whose other members are `head`.

    `ended` are the choices whose earlier texts have ended. `calls` have begun earlier.
    """

    head: Mapping[str, Any]
    calls: set[Channel]
    texts: list[Text] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def take(self, choice: Any) -> Any:
        """Return a choice without its texts."""
        delta = member(choice, "delta")
        if isinstance(choice, dict) and choice.get("finish_reason"):
            self.ended.append(group_of(choice))
        if not isinstance(delta, dict):
            return choice
        reader = _Delta(self, choice)
        rest = {name: reader.take(name, delta[name]) for name in delta}
        # Probabilities repeat the text, token by token.
        kept = {name: choice[name] for name in choice if name != "logprobs"}
        return kept | {"delta": {n: v for n, v in rest.items() if v is not None}}


def group_of(choice: Mapping[str, Any]) -> str:
    return str(choice.get("index", 0))


def begins_call(call: Any) -> bool:
    """Return True if a part of a call has its id or its name."""
    names = (member(call, kind, "name") for kind in CALLS)
    return bool(member(call, "id") or any(names))


@dataclass(slots=True)
class _Delta:
    """The delta of a choice."""

    chunk: ChunkTexts
    choice: Mapping[str, Any]

    def take(self, name: str, value: Any) -> Any:
        """Return a member without its texts; None if nothing is left."""
        if name in FIELDS and isinstance(value, str) and value:
            self._add((name,), value, lambda new: {name: new})
            return None
        if name in OBJECTS and isinstance(value, dict):
            return self._object(name, value)
        if name == "tool_calls" and isinstance(value, list):
            return [self._call(call) for call in value]
        if name in LISTS and isinstance(value, list):
            return [p for p in value if not self._part(name, p)] or None
        return value

    def _add(
        self,
        place: Channel,
        text: str,
        delta_of: Callable[[str], dict[str, Any]],
        *,
        is_last: bool = False,
    ) -> None:
        head, index = self.chunk.head, self.choice.get("index", 0)

        def write(new: str) -> bytes:
            choice = {"index": index, "delta": delta_of(new), "finish_reason": None}
            return chunks.dump({**head, "choices": [choice]})

        channel = group_of(self.choice), *place
        self.chunk.texts.append(Text(channel, text, write, is_last))

    def _object(self, name: str, value: dict[str, Any]) -> dict[str, Any] | None:
        if value.get("name"):
            self._end()
        text = value.get(key := OBJECTS[name])
        if not isinstance(text, str) or not text:
            return value
        self._add((name,), text, lambda new: {name: {key: new}})
        rest = {**value, key: ""}
        return rest if any(rest.values()) else None

    def _call(self, call: Any) -> Any:
        number = member(call, "index") or 0
        if begins_call(call):
            self._begin_call(str(number), call.get("id"))
        for kind, key in CALLS.items():
            text = member(call, kind, key)
            if isinstance(text, str) and text:
                self._add(("call", str(number)), text, _call_writer(number, kind, key))
                return {**call, kind: {**call[kind], key: ""}}
        return call

    def _begin_call(self, number: str, call_id: Any) -> None:
        """End earlier texts, unless the call has begun: some servers repeat its id."""
        call = group_of(self.choice), number, str(call_id or "")
        if not call_id or call not in self.chunk.calls:
            self._end()
        self.chunk.calls.add(call)

    def _end(self) -> None:
        self.chunk.ended.append(group_of(self.choice))

    def _part(self, name: str, part: Any) -> bool:
        """Return True if a part of a list is nothing but a text, which is taken."""
        texts = [*_texts_of(part)]
        place = (name, *(str(member(part, key)) for key in ("type", "index", "id")))
        is_last = bool(member(part, "signature"))
        for key, text, new_part in texts:
            write = _part_writer(name, new_part)
            self._add((*place, key), text, write, is_last=is_last)
        is_empty = any(member(part, key) == "" for key in PARTS)
        if not texts and (is_last or not is_empty):
            self._end()
        return bool(texts)


def _texts_of(part: Any) -> Iterator[tuple[str, str, Callable[[str], dict[str, Any]]]]:
    """Yield the texts of a part with their keys, each with what makes a part of another text."""
    for key in PARTS:
        value = member(part, key)
        if isinstance(value, str) and value:
            yield key, value, _with(part, key)
        elif isinstance(value, list):
            for inner in value:
                for _, text, new_inner in _texts_of(inner):
                    yield key, text, _with(part, key, new_inner)


def _with(
    part: dict[str, Any], key: str, inner: Callable[[str], Any] | None = None
) -> Callable[[str], dict[str, Any]]:
    def rebuilt(new: str) -> dict[str, Any]:
        # A signature covers exactly the text.
        is_void = part.get("signature") and new != part[key]
        value = [inner(new)] if inner else new
        return {**part, key: value, **({"signature": ""} if is_void else {})}

    return rebuilt


def _part_writer(
    name: str, new_part: Callable[[str], dict[str, Any]]
) -> Callable[[str], dict[str, Any]]:
    return lambda new: {name: [new_part(new)]}


def _call_writer(number: Any, kind: str, key: str) -> Callable[[str], dict[str, Any]]:
    return lambda new: {"tool_calls": [{"index": number, kind: {key: new}}]}
