"""The messages of a chat request as system and turns of Anthropic's Messages API. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.chat.apis.messages.reader import THINKING
from gateway.chat.apis.messages.writer import arguments_of
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.upstreams.anthropic.call_ids import replace_ids
from gateway.json import text_of

Block = dict[str, Any]

SYSTEM = ("system", "developer")
ROLES = (*SYSTEM, "user", "assistant", "tool")
# Names that clients give to the API's media types.
MEDIA_TYPES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "application/x-pdf": "application/pdf",
}
# Where a block of thinking stood in its message.
PLACE = ("index", "calls")
# What shows that a block of thinking is the API's own.
PROOFS = {"thinking": "signature", "redacted_thinking": "data"}


def with_cache_control(block: Block, part: Mapping[str, Any]) -> Block:
    """Return a block with the `cache_control` of its part of the request."""
    cache_control = part.get("cache_control")
    if cache_control is None:
        return block
    if not isinstance(cache_control, dict):
        raise InvalidValueError("cache_control: must be an object.")
    return {**block, "cache_control": cache_control}


def _role(message: Any) -> str:
    """Return the role. Raises InvalidValueError, UnsupportedRequestError."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise InvalidValueError("messages: each must be an object with a role.")
    role: str = message["role"]
    if role not in ROLES:
        raise UnsupportedRequestError(f"messages with the role {role}")
    return role


def system(messages: Sequence[Any]) -> dict[str, Any]:
    """Return the system prompt: text, or blocks if one has `cache_control`."""
    blocks = [
        block
        for message in messages
        if (role := _role(message)) in SYSTEM
        for block in _without_blanks(_blocks(role, message))
    ]
    if any("cache_control" in block for block in blocks):
        return {"system": blocks}
    return {"system": "\n".join(block["text"] for block in blocks)} if blocks else {}


def turns(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the turns; the API requires the results of tools in one turn, before all else."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        role = _role(message)
        if role in SYSTEM:
            continue
        turn_role = "assistant" if role == "assistant" else "user"
        content = _without_blanks(_blocks(role, message))
        if not content:
            continue
        if merged and merged[-1]["role"] == turn_role:
            merged[-1]["content"] += content
        else:
            merged.append({"role": turn_role, "content": content})
    for turn in merged:
        turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    replace_ids(block for turn in merged for block in turn["content"])
    return merged


def _blocks(role: str, message: Mapping[str, Any]) -> list[Block]:
    """Return a message's blocks; its `cache_control` belongs to the last one."""
    match role:
        case "assistant":
            blocks = _assistant(message)
        case "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message.get("tool_call_id"),
                "content": _without_blanks(_content(message.get("content"))),
            }
            blocks = [result]
        case _:
            blocks = _content(message.get("content"))
    return [
        *blocks[:-1],
        *(with_cache_control(block, message) for block in blocks[-1:]),
    ]


def _without_blanks(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks without those whose text is empty or white space: the API refuses them.

    The `cache_control` of such a block goes to the block before, where the same prefix ends.
    A block of thinking cannot have one.
    """
    kept: list[Block] = []
    for block in blocks:
        if block["type"] != "text" or block["text"].strip():
            kept.append(block)
        elif "cache_control" in block and kept and kept[-1]["type"] not in THINKING:
            kept[-1] = {"cache_control": block["cache_control"], **kept[-1]}
    return kept


# ── The assistant ───────────────────────────────────────────────────────────────────


def _assistant(message: Mapping[str, Any]) -> list[Block]:
    """Return the blocks in the order in which the API sent them.

    A block of thinking has its `index` among all blocks, and so many `calls` before it.
    """
    texts = _content(message.get("content"))
    if text := text_of(message.get("refusal")):
        texts.append({"type": "text", "text": text})
    texts = [block for block in texts if block.get("text") != ""]
    calls = [*map(_tool_use, _list(message, "tool_calls"))]
    blocks: list[Block] = []
    counted = 0  # blocks of thinking, and calls
    for block in _list(message, "thinking_blocks"):
        if (signed := _thinking(block)) is None:
            continue
        before = max(0, _number(block, "calls") - (counted - _thoughts(blocks)))
        place = _number(block, "index") - len(blocks) - before
        taken, texts = texts[: max(0, place)], texts[max(0, place) :]
        called, calls = calls[:before], calls[before:]
        blocks += [*taken, *called, signed]
        counted += len(called) + 1
    return [*blocks, *texts, *calls]


def _thoughts(blocks: Sequence[Block]) -> int:
    return sum(block["type"] in THINKING for block in blocks)


def _number(block: Mapping[str, Any], name: str) -> int:
    value = block.get(name)
    return value if isinstance(value, int) else 0


def _thinking(block: Any) -> Block | None:
    """Return a block as the API sent it: its signature covers exactly this text.

    Without a signature it is another model's, and left out.
    """
    if not isinstance(block, dict) or block.get("type") not in THINKING:
        raise InvalidValueError("messages: a thinking block has no type.")
    if not text_of(block.get(PROOFS[block["type"]])):
        return None
    return {name: value for name, value in block.items() if name not in PLACE}


def _list(message: Mapping[str, Any], name: str) -> list[Any]:
    value = message.get(name)
    if value is not None and not isinstance(value, list):
        raise InvalidValueError(f"messages: {name} must be a list.")
    return value or []


def _tool_use(call: Any) -> Block:
    match call:
        case {"id": str(key), "function": {"name": str(name)} as function}:
            arguments = arguments_of(function.get("arguments"))
            return {"type": "tool_use", "id": key, "name": name, "input": arguments}
        case {"type": str(kind)} if kind != "function":
            raise UnsupportedRequestError(f"tool calls of the type {kind}")
    raise InvalidValueError("messages: a tool call needs id, name and arguments.")


# ── Content ─────────────────────────────────────────────────────────────────────────


def _content(content: Any) -> list[Block]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise InvalidValueError("messages: content must be a string or a list.")
    return [block for part in content if (block := _block(part)) is not None]


def _block(part: Any) -> Block | None:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise InvalidValueError("messages: a part of the content has no type.")
    match part["type"]:
        case "text" | "refusal" as kind:
            if not isinstance(part.get(kind), str):
                text = f"messages: a part of the type {kind} has no text."
                raise InvalidValueError(text)
            block: Block = {"type": "text", "text": part[kind]}
        case "image_url":
            block = _image(part)
        case "file":
            block = _file(part)
        case "thinking" | "redacted_thinking":
            return _thinking(part)
        case "reasoning":  # of another model
            return None
        case kind:
            raise UnsupportedRequestError(f"content of the type {kind}")
    return with_cache_control(block, part)


def _image(part: Mapping[str, Any]) -> Block:
    image = part.get("image_url")
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        raise InvalidValueError("messages: an image needs its url.")
    url: str = image["url"]
    if not _is_data(url):
        return {"type": "image", "source": {"type": "url", "url": url}}
    media_type, data = _data_url(url)
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source}


def _is_data(url: str) -> bool:
    return url[:5].lower() == "data:"


def _data_url(url: str) -> tuple[str, str]:
    """Return the media type and the data in base64."""
    head, _, data = url[5:].partition(",")
    media_type, *parameters = (part.strip() for part in head.lower().split(";"))
    if "base64" not in parameters:
        raise UnsupportedRequestError("data that is not in base64")
    return MEDIA_TYPES.get(media_type, media_type), data


def _file(part: Mapping[str, Any]) -> Block:
    file = part.get("file")
    if not isinstance(file, dict):
        raise InvalidValueError("messages: a part of the type file has no file.")
    data = file.get("file_data")
    if not isinstance(data, str) or not _is_data(data):
        raise InvalidValueError("messages: file_data must be a data URL.")
    title = {"title": file["filename"]} if file.get("filename") else {}
    return {"type": "document", "source": _document(data), **title}


def _document(url: str) -> dict[str, str]:
    media_type, data = _data_url(url)
    match media_type:
        case "application/pdf":
            return {"type": "base64", "media_type": media_type, "data": data}
        case "text/plain":
            return {"type": "text", "media_type": media_type, "data": _decoded(data)}
    raise UnsupportedRequestError(f"files of the type {media_type}")


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidValueError("messages: a file is not text in UTF-8.") from error
