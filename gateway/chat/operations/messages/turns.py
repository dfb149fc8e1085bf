"""The turns of Anthropic's Messages API as messages of a chat request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gateway import json
from gateway.chat.core.answers import THOUGHTS
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.operations.carried import merge
from gateway.chat.operations.messages import tools
from gateway.chat.operations.messages.call_ids import CallIds
from gateway.chat.upstreams.turns import is_empty, refuse_others
from gateway.json import member, parts_in

Part = dict[str, Any]
# What stands in a signature of thinking that an upstream of another kind sent: the name of the
# field in which it gets the text back.
OWN_PREFIX = "signpost:"
OWN_SIGNATURES = {f"{OWN_PREFIX}{name}": name for name in THOUGHTS}
# What a block may hold beside its content, without an effect on other upstreams.
WITHOUT_EFFECT = ("type", "cache_control")


def messages(body: Mapping[str, Any], ids: CallIds) -> list[dict[str, Any]]:
    """Return the messages of a chat request; `ids` gets the calls among them.

    Raises InvalidValueError for what is not of the API's shape, UnsupportedRequestError for
    what has no counterpart.
    """
    turns = body.get("messages")
    if not isinstance(turns, list):
        raise InvalidValueError("messages: must be a list.")
    translated = _system(body.get("system"))
    for turn in turns:
        translated += _messages(turn, ids)
    return translated


def _system(content: Any) -> list[dict[str, Any]]:
    blocks = _blocks(content, "system")
    text = _joined(_text(block) for block in blocks)
    return [{"role": "system", "content": text}] if text else []


def _messages(turn: Any, ids: CallIds) -> Iterator[dict[str, Any]]:
    match turn:
        case {"role": "user", "content": content}:
            refuse_others(turn, ("role", "content"), "messages")
            yield from _user(_blocks(content, "messages"), ids)
        case {"role": "assistant", "content": content}:
            refuse_others(turn, ("role", "content"), "messages")
            yield from _assistant(_blocks(content, "messages"), ids)
        case {"role": "system", "content": content}:
            yield from _system(_without_changes(_blocks(content, "messages")))
        case {"role": str(role), "content": _}:
            raise InvalidValueError(f"messages: no role {role!r:.100}.")
        case _:
            raise InvalidValueError("messages: each must have a role and content.")


def _without_changes(blocks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the blocks that do not change the tools, which tools.py reads."""
    others = []
    for block in blocks:
        if block["type"] in tools.CHANGES:
            refuse_others(block, (*WITHOUT_EFFECT, "tool"), block["type"])
        else:
            others.append(block)
    return others


def _blocks(content: Any, where: str) -> Sequence[Mapping[str, Any]]:
    if content is None:
        return ()
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    if not isinstance(content, list):
        raise InvalidValueError(f"{where}: content must be a string or a list.")
    for block in content:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise InvalidValueError(f"{where}: a block of the content has no type.")
    return content


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _text(block: Mapping[str, Any]) -> str:
    if block["type"] != "text":
        raise UnsupportedRequestError(f"blocks of the type {block['type']}")
    refuse_others(block, (*WITHOUT_EFFECT, "text", "citations"), "text")
    return _string(block, "text")


def _string(block: Mapping[str, Any], name: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise InvalidValueError(f"messages: {block['type']}.{name} must be a string.")
    return value


# ── Turns of the user ───────────────────────────────────────────────────────────────


def _user(
    blocks: Sequence[Mapping[str, Any]], ids: CallIds
) -> Iterator[dict[str, Any]]:
    """Yield the results of tools first, which must follow their calls, then all the rest."""
    rest: list[Part] = []
    for block in blocks:
        if block["type"] == "tool_result":
            message, others = _result(block, ids)
            yield message
            rest += others
        else:
            rest += _parts(block)
    if rest:
        yield {"role": "user", "content": _content(rest)}


def _content(parts: Sequence[Part]) -> Any:
    """Return text alone as a string, which every server takes."""
    if all(part["type"] == "text" for part in parts):
        return _joined(part["text"] for part in parts)
    return [part for part in parts if part["type"] != "text" or part["text"]]


def _result(
    block: Mapping[str, Any], ids: CallIds
) -> tuple[dict[str, Any], list[Part]]:
    """Return the result of a tool, and what of it is no text: that goes to the user's message."""
    known = (*WITHOUT_EFFECT, "tool_use_id", "content", "is_error")
    refuse_others(block, known, "tool_result")
    key = _string(block, "tool_use_id")
    inner = _blocks(block.get("content"), "tool_result")
    parts = [part for each in inner for part in _parts(each)]
    text = _joined(part["text"] for part in parts if part["type"] == "text")
    if block.get("is_error"):
        text = f"Error: {text}"
    others = [part for part in parts if part["type"] != "text"]
    message = {"role": "tool", "tool_call_id": ids.own(key), "content": text}
    return message, others


def _parts(block: Mapping[str, Any]) -> list[Part]:
    kind = block["type"]
    translate = PARTS.get(kind)
    if translate is None:
        raise UnsupportedRequestError(f"blocks of the type {kind}")
    return translate(block)


def _text_part(block: Mapping[str, Any]) -> list[Part]:
    return [{"type": "text", "text": _text(block)}]


def _image(block: Mapping[str, Any]) -> list[Part]:
    refuse_others(block, (*WITHOUT_EFFECT, "source"), "image")
    match block.get("source"):
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            url = f"data:{kind};base64,{data}"
        case {"type": "url", "url": str(url)}:
            pass
        case source:
            raise _unknown_source("image", source)
    return [{"type": "image_url", "image_url": {"url": url}}]


def _unknown_source(where: str, source: Any) -> Exception:
    if isinstance(source, dict) and isinstance(source.get("type"), str):
        kind = f"{where} with a source of the type {source['type']}"
        return UnsupportedRequestError(kind)
    return InvalidValueError(f"messages: {where} needs its source.")


def _document(block: Mapping[str, Any]) -> list[Part]:
    known = (*WITHOUT_EFFECT, "source", "title", "context", "citations")
    refuse_others(block, known, "document")
    if member(block, "citations", "enabled"):
        raise UnsupportedRequestError("citations")
    title = block.get("title") if isinstance(block.get("title"), str) else None
    about = [block.get(name) for name in ("title", "context")]
    head = [{"type": "text", "text": text} for text in about if isinstance(text, str)]
    match block.get("source"):
        case {"type": "base64", "media_type": "application/pdf", "data": str(data)}:
            url = f"data:application/pdf;base64,{data}"
            file = {"filename": title or "document.pdf", "file_data": url}
            return [*head[1 if title else 0 :], {"type": "file", "file": file}]
        case {"type": "text", "data": str(text)}:
            return [*head, {"type": "text", "text": text}]
        case {"type": "content", "content": content}:
            inner = _blocks(content, "document")
            return [*head, *(part for each in inner for part in _parts(each))]
        case source:
            raise _unknown_source("document", source)


def _search_result(block: Mapping[str, Any]) -> list[Part]:
    texts = [_string(block, name) for name in ("title", "source")]
    texts += map(_text, _blocks(block.get("content"), "search_result"))
    return [{"type": "text", "text": _joined(texts)}]


def _reference(block: Mapping[str, Any]) -> list[Part]:
    """Return a text in place of a reference to a tool, which the model can call from now on."""
    refuse_others(block, (*WITHOUT_EFFECT, "tool_name"), tools.REFERENCE)
    name = _string(block, "tool_name")
    return [{"type": "text", "text": f"The tool {name} is available."}]


PARTS: Mapping[str, Callable[[Mapping[str, Any]], list[Part]]] = {
    "text": _text_part,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    tools.REFERENCE: _reference,
}


# ── Turns of the assistant ──────────────────────────────────────────────────────────


def _assistant(
    blocks: Sequence[Mapping[str, Any]], ids: CallIds
) -> Iterator[dict[str, Any]]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    thinking: dict[str, Any] = {}
    for block in blocks:
        match block["type"]:
            case "tool_use":
                calls.append(_call(block, ids))
            case "thinking":
                merge(thinking, _thought(block, ids))
            case "redacted_thinking":
                pass
            case _:
                texts.append(_text(block))
    content = "".join(texts)
    if content or calls:
        yield {
            "role": "assistant",
            "content": content or None,
            **thinking,
            **({"tool_calls": calls} if calls else {}),
        }


def _thought(block: Mapping[str, Any], ids: CallIds) -> Mapping[str, Any]:
    """Return what the upstream wants back of its thinking.

    What a model of Anthropic's thought is signed for that alone.
    """
    signature = block.get("signature")
    name = OWN_SIGNATURES.get(str(signature))
    if name is not None:
        return {name: _string(block, "thinking")}
    return ids.carrier.reasoning_of(signature)


def _call(block: Mapping[str, Any], ids: CallIds) -> dict[str, Any]:
    refuse_others(block, (*WITHOUT_EFFECT, "id", "name", "input", "caller"), "tool_use")
    given = block.get("input")
    if not isinstance(given, dict):
        raise InvalidValueError("messages: tool_use.input must be an object.")
    try:
        arguments = json.dumps(given).decode()
    except ValueError as error:
        raise InvalidValueError("The body is nested too deeply.") from error
    key, extra = ids.sent_back(_string(block, "id"))
    return {
        "id": key,
        "type": "function",
        "function": {"name": _string(block, "name"), "arguments": arguments},
        **extra,
    }


def marked(body: Mapping[str, Any]) -> int:
    """Return how many blocks have a `cache_control`; the API takes four."""
    parts = parts_in(*(body.get(name) for name in ("system", "tools", "messages")))
    return sum(not is_empty(part.get("cache_control")) for part in parts)
