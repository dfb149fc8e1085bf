"""The messages of a chat request as system and turns of Anthropic's Messages API. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from gateway.chat.apis.base import translating
from gateway.chat.apis.messages.writer import arguments_of
from gateway.chat.errors import UnsupportedRequestError
from gateway.json import text_of

Block = dict[str, Any]

SYSTEM = ("system", "developer")
NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
# Where a block of thinking stood in its message.
PLACE = ("index", "calls")
# What shows that a block of thinking is the API's own.
PROOFS = {"thinking": "signature", "redacted_thinking": "data"}


def with_cache_control(block: Block, part: Mapping[str, Any]) -> Block:
    """Return a block with the `cache_control` of its part of the request."""
    cache_control = part.get("cache_control")
    return {**block, "cache_control": cache_control} if cache_control else block


def conversation(messages: Sequence[Any]) -> dict[str, Any]:
    """Return the turns, and the system prompt: text, or blocks if one has `cache_control`.

    The API requires the results of tools in one turn, before all else.
    """
    prompt: list[Block] = []
    turns: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        with translating(f"messages[{number}]"):
            role, content = message["role"], _blocks(message)
        turn = "assistant" if role == "assistant" else "user"
        if role in SYSTEM:
            prompt += content
        elif content and turns and turns[-1]["role"] == turn:
            turns[-1]["content"] += content
        elif content:
            turns.append({"role": turn, "content": content})
    for each in turns:
        each["content"].sort(key=lambda block: block["type"] != "tool_result")
    if not prompt:
        return {"messages": turns}
    is_marked = any("cache_control" in block for block in prompt)
    text = "\n".join(block["text"] for block in prompt)
    return {"messages": turns, "system": prompt if is_marked else text}


def _blocks(message: Mapping[str, Any]) -> list[Block]:
    """Return a message's blocks; its `cache_control` belongs to the last one."""
    match message["role"]:
        case "assistant":
            blocks = _assistant(message)
        case "tool":
            key, content = (
                _id(message["tool_call_id"]),
                _content(message.get("content")),
            )
            result = {"type": "tool_result", "tool_use_id": key, "content": content}
            blocks = [result]
        case "user" | "system" | "developer":
            blocks = _content(message.get("content"))
        case role:
            raise UnsupportedRequestError(f"messages with the role {role}")
    return [
        *blocks[:-1],
        *(with_cache_control(block, message) for block in blocks[-1:]),
    ]


# ── The assistant ───────────────────────────────────────────────────────────────────


def _assistant(message: Mapping[str, Any]) -> list[Block]:
    """Return the blocks in the order in which the API sent them.

    A block of thinking has its `index` among all blocks, and so many `calls` before it.
    """
    texts = _content(message.get("content"))
    if (text := text_of(message.get("refusal"))).strip():
        texts.append({"type": "text", "text": text})
    calls = [*map(_tool_use, message.get("tool_calls") or ())]
    blocks: list[Block] = []
    said = called = 0
    for thoughts, block in enumerate(message.get("thinking_blocks") or ()):
        calls_before = max(called, _number(block, "calls"))
        texts_before = max(said, _number(block, "index") - thoughts - calls_before)
        blocks += [*texts[said:texts_before], *calls[called:calls_before]]
        said, called = texts_before, calls_before
        if signed := _thinking(block):
            blocks.append(signed)
    return [*blocks, *texts[said:], *calls[called:]]


def _number(block: Mapping[str, Any], name: str) -> int:
    value = block.get(name)
    return value if isinstance(value, int) else 0


def _thinking(block: Mapping[str, Any]) -> Block | None:
    """Return a block as the API sent it: its signature covers exactly this text.

    Without a signature it is another model's, and left out.
    """
    if not block.get(PROOFS.get(block["type"], "")):
        return None
    return {name: value for name, value in block.items() if name not in PLACE}


def _tool_use(call: Mapping[str, Any]) -> Block:
    if call.get("type", "function") != "function":
        raise UnsupportedRequestError(f"tool calls of the type {call['type']}")
    function = call["function"]
    arguments = arguments_of(function.get("arguments"))
    key, name = _id(call["id"]), function["name"]
    return {"type": "tool_use", "id": key, "name": name, "input": arguments}


def _id(key: str) -> str:
    """Return the id of a call in the characters that the API takes; other servers have more."""
    if key and not NOT_IN_IDS.search(key):
        return key
    digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{NOT_IN_IDS.sub('_', key[:40])}_{digest}"


# ── Content ─────────────────────────────────────────────────────────────────────────


def _content(content: Any) -> list[Block]:
    """Return the blocks without texts that are empty or white space, which the API refuses."""
    parts = (
        ({"type": "text", "text": content},) if isinstance(content, str) else content
    )
    blocks = (_block(part) for part in parts or ())
    return [b for b in blocks if b and (b["type"] != "text" or b["text"].strip())]


def _block(part: Mapping[str, Any]) -> Block | None:
    match part["type"]:
        case "text" | "refusal" as kind:
            block: Block = {"type": "text", "text": part[kind]}
        case "image_url":
            block = _image(part["image_url"]["url"])
        case "file":
            block = _file(part["file"])
        case "thinking" | "redacted_thinking":
            return _thinking(part)
        case "reasoning":  # of another model
            return None
        case kind:
            raise UnsupportedRequestError(f"content of the type {kind}")
    return with_cache_control(block, part)


def _image(url: str) -> Block:
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
    # The API does not know the name that some clients give.
    return "image/jpeg" if media_type == "image/jpg" else media_type, data


def _file(file: Mapping[str, Any]) -> Block:
    title = {"title": file["filename"]} if file.get("filename") else {}
    media_type, data = _data_url(file["file_data"])
    match media_type:
        case "application/pdf":
            source = {"type": "base64", "media_type": media_type, "data": data}
        case "text/plain":
            text = base64.b64decode(data, validate=True).decode()
            source = {"type": "text", "media_type": media_type, "data": text}
        case _:
            raise UnsupportedRequestError(f"files of the type {media_type}")
    return {"type": "document", "source": source, **title}
