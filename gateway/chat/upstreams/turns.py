"""The messages of a chat request as system and turns of Anthropic's Messages API. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from gateway.chat import exact_json
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError

Block = dict[str, Any]

SYSTEM = frozenset({"system", "developer"})
# The fields of messages that are translated, or say nothing that the others do not say.
FIELDS: Mapping[str, frozenset[str]] = {
    "system": frozenset({"role", "content", "cache_control"}),
    "developer": frozenset({"role", "content", "cache_control"}),
    "user": frozenset({"role", "content", "cache_control"}),
    "assistant": frozenset(
        {
            "role",
            "content",
            "cache_control",
            "refusal",
            "tool_calls",
            "thinking_blocks",
            "reasoning_content",
        }
    ),
    # The id of the call says which tool it was.
    "tool": frozenset({"role", "content", "cache_control", "tool_call_id", "name"}),
}


def only(value: Mapping[str, Any], names: Collection[str], where: str) -> None:
    """Raise UnsupportedRequestError for fields that say something and have other names."""
    others = [it for it in value if it not in names and not is_empty(value[it])]
    if others:
        raise UnsupportedRequestError(f"{where}: {', '.join(others)}"[:500])


def is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def cached(block: Block, given: Mapping[str, Any]) -> Block:
    """Return a block with the mark for the cache that its part of the request has."""
    mark = given.get("cache_control")
    if mark is None:
        return block
    if not isinstance(mark, dict):
        raise InvalidValueError("cache_control: must be an object.")
    return {**block, "cache_control": mark}


def _role(message: Any) -> str:
    """Return the role. Raises what a message that cannot be translated raises."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise InvalidValueError("messages: each must be an object with a role.")
    role: str = message["role"]
    if role not in FIELDS:
        raise UnsupportedRequestError(f"messages with the role {role}"[:500])
    only(message, FIELDS[role], f"messages with the role {role}")
    return role


def system(messages: Sequence[Any]) -> dict[str, Any]:
    """Return the system prompt: text, or blocks where one is marked for the cache."""
    blocks = [
        block
        for message in messages
        if (role := _role(message)) in SYSTEM
        for block in _whole(role, message)
    ]
    if any("cache_control" in it for it in blocks):
        return {"system": blocks}
    return {"system": "\n".join(it["text"] for it in blocks)} if blocks else {}


def turns(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the turns; the API wants the results of tools that belong together in one."""
    found: list[dict[str, Any]] = []
    for message in messages:
        role = _role(message)
        if role in SYSTEM:
            continue
        spoken = "assistant" if role == "assistant" else "user"
        content = _whole(role, message)
        if found and found[-1]["role"] == spoken:
            found[-1]["content"] += content
        else:
            found.append({"role": spoken, "content": content})
    return found


def _whole(role: str, message: Mapping[str, Any]) -> list[Block]:
    """Return a message's blocks; a mark of the message is one of its last block."""
    blocks = list(_content(role, message))
    if not blocks and message.get("cache_control") is not None:
        raise UnsupportedRequestError("cache_control on an empty message")
    return [*blocks[:-1], *(cached(it, message) for it in blocks[-1:])]


def _content(role: str, message: Mapping[str, Any]) -> Iterator[Block]:
    match role:
        case "assistant":
            yield from _assistant(message)
        case "tool":
            yield {
                "type": "tool_result",
                "tool_use_id": message.get("tool_call_id"),
                "content": _blocks(role, message.get("content")),
            }
        case _:
            yield from _blocks(role, message.get("content"))


def _assistant(message: Mapping[str, Any]) -> list[Block]:
    """Return the blocks in the order in which the API sent them."""
    found = [
        it
        for it in _blocks("assistant", message.get("content"))
        # An empty text is refused there, and usual here beside tool calls.
        if it["type"] != "text" or it["text"]
    ]
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        found.append({"type": "text", "text": message["refusal"]})
    found += map(_tool_use, _listed(message, "tool_calls"))
    for place, block in enumerate(_listed(message, "thinking_blocks")):
        index = block.get("index") if isinstance(block, dict) else None
        found.insert(index if isinstance(index, int) else place, _thinking(block))
    if message.get("reasoning_content") and not any(map(_is_thought, found)):
        # The API takes thoughts back with their signature alone.
        raise UnsupportedRequestError("reasoning_content without thinking_blocks")
    return found


def _listed(message: Mapping[str, Any], name: str) -> list[Any]:
    value = message.get(name)
    if value is not None and not isinstance(value, list):
        raise InvalidValueError(f"messages: {name} must be a list.")
    return value or []


def _is_thought(block: Block) -> bool:
    return block["type"] in {"thinking", "redacted_thinking"}


def _blocks(role: str, content: Any) -> list[Block]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise InvalidValueError("messages: content must be a string or a list.")
    return [_block(role, part) for part in content]


def _block(role: str, part: Any) -> Block:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise InvalidValueError("messages: a part of the content has no type.")
    kind = part["type"]
    if kind not in PARTS:
        raise UnsupportedRequestError(f"content of the type {kind}"[:500])
    roles, translate = PARTS[kind]
    if role not in roles:
        where = f"content of the type {kind} in messages with the role {role}"
        raise UnsupportedRequestError(where)
    return translate(part)


def _text(part: Mapping[str, Any]) -> Block:
    kind = part["type"]
    only(part, {"type", kind, "cache_control"}, f"content of the type {kind}")
    if not isinstance(part.get(kind), str):
        raise InvalidValueError(f"messages: a part of the type {kind} has no text.")
    return cached({"type": "text", "text": part[kind]}, part)


def _image(part: Mapping[str, Any]) -> Block:
    only(part, {"type", "image_url", "cache_control"}, "content of the type image_url")
    image = part.get("image_url")
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        raise InvalidValueError("messages: an image needs its url.")
    only(image, {"url", "detail"}, "image_url")
    # Images are always read at full resolution.
    if image.get("detail") not in (None, "auto", "high"):
        raise UnsupportedRequestError("image_url: detail")
    return cached({"type": "image", "source": _source(image["url"])}, part)


def _source(url: str) -> dict[str, str]:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    media_type, data = _data_url(url)
    return {"type": "base64", "media_type": media_type, "data": data}


def _data_url(url: str) -> tuple[str, str]:
    """Return the media type and the data in base64."""
    head, _, data = url.removeprefix("data:").partition(",")
    media_type, *parameters = head.split(";")
    if "base64" not in parameters:
        raise UnsupportedRequestError("data that is not in base64")
    return media_type, data


def _file(part: Mapping[str, Any]) -> Block:
    only(part, {"type", "file", "cache_control"}, "content of the type file")
    file = part.get("file")
    if not isinstance(file, dict):
        raise InvalidValueError("messages: a part of the type file has no file.")
    only(file, {"filename", "file_data"}, "file")
    data = file.get("file_data")
    if not isinstance(data, str) or not data.startswith("data:"):
        raise InvalidValueError("messages: file_data must be a data URL.")
    title = {"title": file["filename"]} if file.get("filename") else {}
    return cached({"type": "document", "source": _document(data), **title}, part)


def _document(url: str) -> dict[str, str]:
    media_type, data = _data_url(url)
    match media_type:
        case "application/pdf":
            return {"type": "base64", "media_type": media_type, "data": data}
        case "text/plain":
            return {"type": "text", "media_type": media_type, "data": _decoded(data)}
    raise UnsupportedRequestError(f"files of the type {media_type}"[:500])


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidValueError("messages: a file is not text in UTF-8.") from error


def _thinking(part: Any) -> Block:
    """Return a block as the API sent it: its signature counts for this text alone."""
    match part:
        case {"type": "thinking", "thinking": str(), "signature": str()} | {
            "type": "redacted_thinking",
            "data": str(),
        }:
            return {name: value for name, value in part.items() if name != "index"}
    raise InvalidValueError(
        "messages: a thinking block needs its text and signature, or its data."
    )


def _tool_use(call: Any) -> Block:
    match call:
        case {"id": str(key), "function": {"name": str(name), "arguments": str(text)}}:
            only(call, {"id", "type", "function", "index"}, "tool_calls")
            only(call["function"], {"name", "arguments"}, "tool_calls")
            return {"type": "tool_use", "id": key, "name": name, "input": _input(text)}
        case {"type": str(kind)} if kind != "function":
            raise UnsupportedRequestError(f"tool calls of the type {kind}"[:500])
    raise InvalidValueError("messages: a tool call needs id, name and arguments.")


def _input(text: str) -> Any:
    try:
        return exact_json.loads((text or "{}").encode())
    except ValueError as error:
        raise InvalidValueError(
            "messages: a tool call's arguments are not JSON."
        ) from error


# The types of content: whose messages may have them, and what becomes of them.
PARTS: Mapping[str, tuple[frozenset[str], Callable[[Mapping[str, Any]], Block]]] = {
    "text": (frozenset(FIELDS), _text),
    "refusal": (frozenset({"assistant"}), _text),
    "image_url": (frozenset({"user", "tool"}), _image),
    "file": (frozenset({"user", "tool"}), _file),
    "thinking": (frozenset({"assistant"}), _thinking),
    "redacted_thinking": (frozenset({"assistant"}), _thinking),
}
