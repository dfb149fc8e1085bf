"""The turns of Anthropic's Messages API as messages of a chat request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gateway import json
from gateway.chat.apis import carried
from gateway.chat.apis.base import messages_of, translating
from gateway.chat.apis.messages.writer import OWN_SIGNATURES
from gateway.chat.errors import UnsupportedRequestError
from gateway.json import text_of

Part = dict[str, Any]
PDF = "application/pdf"
# Blocks of an assistant's turn that are another server's own tools, and what these returned.
HOSTED = ("_tool_use", "_tool_result", "container_upload", "compaction")


def messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a chat request.

    Raises UnsupportedRequestError for content that has no counterpart, InvalidValueError for what
    is not of the API's shape.
    """
    translated = _system(body.get("system"))
    for number, turn in enumerate(messages_of(body)):
        with translating(f"messages[{number}]"):
            translated += _messages(turn)
    return translated


def _system(content: Any) -> list[dict[str, Any]]:
    """Return the text of a system prompt; blocks that change the tools have none."""
    blocks = _blocks(content)
    text = _joined(_text(block) for block in blocks if block["type"] == "text")
    return [{"role": "system", "content": text}] if text else []


def _messages(turn: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match turn["role"]:
        case "user":
            yield from _user(_blocks(turn["content"]))
        case "assistant":
            yield from _assistant(_blocks(turn["content"]))
        case "system":
            yield from _system(turn["content"])
        case role:
            raise UnsupportedRequestError(f"messages with the role {role}")


def _blocks(content: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    blocks: Sequence[Mapping[str, Any]] = content or ()
    return blocks


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _text(block: Mapping[str, Any]) -> str:
    if block["type"] != "text":
        raise UnsupportedRequestError(f"blocks of the type {block['type']}")
    text: str = block["text"]
    return text


# ── Turns of the user ───────────────────────────────────────────────────────────────


def _user(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the results of tools first, which must follow their calls, then all the rest."""
    rest: list[Part] = []
    for block in blocks:
        if block["type"] == "tool_result":
            message, others = _result(block)
            yield message
            rest += others
        else:
            rest.append(_part(block))
    if rest:
        yield {"role": "user", "content": _content(rest)}


def _content(parts: Sequence[Part]) -> Any:
    """Return text alone as a string, which every server takes."""
    if all(part["type"] == "text" for part in parts):
        return _joined(part["text"] for part in parts)
    return [part for part in parts if part["type"] != "text" or part["text"]]


def _result(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[Part]]:
    """Return the result of a tool, and what of it is no text: that goes to the user's message."""
    inner = _blocks(block.get("content"))
    parts = [*map(_part, inner)]
    text = _joined(part["text"] for part in parts if part["type"] == "text")
    if block.get("is_error"):
        text = f"Error: {text}"
    others = [part for part in parts if part["type"] != "text"]
    key, _ = carried.split(block["tool_use_id"])
    return {"role": "tool", "tool_call_id": key, "content": text}, others


def _part(block: Mapping[str, Any]) -> Part:
    match block:
        case {"type": "text"}:
            return {"type": "text", "text": block["text"]}
        # A tool that a search of the client found.
        case {"type": "tool_reference"}:
            return {
                "type": "text",
                "text": f"The tool {block['tool_name']} is available.",
            }
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return {
                "type": "text",
                "text": _joined((text_of(block.get("title")), text)),
            }
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return {"type": "image_url", "image_url": {"url": url}}
        case {
            "type": "image" | "document" as kind,
            "source": {"type": "base64", "media_type": str(media), "data": str(data)},
        } if kind == "image" or media == PDF:
            url = f"data:{media};base64,{data}"
            if kind == "image":
                return {"type": "image_url", "image_url": {"url": url}}
            name = text_of(block.get("title")) or "document.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": url}}
        case {"type": kind, "source": {"type": source}}:
            raise UnsupportedRequestError(f"{kind} with a source of the type {source}")
    raise UnsupportedRequestError(f"blocks of the type {block['type']}")


# ── Turns of the assistant ──────────────────────────────────────────────────────────


def _assistant(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    thinking: dict[str, Any] = {}
    for place, block in enumerate(blocks):
        kind = block["type"]
        if kind == "tool_use":
            calls.append(_call(block))
        elif kind in ("thinking", "redacted_thinking"):
            _think(thinking, block, {"index": place, "calls": len(calls)})
        elif not kind.endswith(HOSTED):
            texts.append(_text(block))
    content = "".join(texts)
    if content or calls:
        yield {
            "role": "assistant",
            "content": content or None,
            **thinking,
            **({"tool_calls": calls} if calls else {}),
        }


def _think(
    message: dict[str, Any], block: Mapping[str, Any], place: Mapping[str, int]
) -> None:
    """Add what the upstream wants back of its thinking.

    What a model of Anthropic's own API thought is signed for that alone, and left out.
    """
    proof = block.get("signature") or block.get("data")
    name, text = OWN_SIGNATURES.get(str(proof)), text_of(block.get("thinking"))
    if name is not None:
        message[name] = message.get(name, "") + text
    elif fields := carried.unpack(proof):
        given = {"thinking": text} if block["type"] == "thinking" else {}
        signed = {**place, "type": block["type"], **given, **fields}
        message.setdefault("thinking_blocks", []).append(signed)


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    key, extra = carried.split(block["id"])
    arguments = json.dumps(block["input"]).decode()
    function = {"name": block["name"], "arguments": arguments}
    return {"id": key, "type": "function", "function": function, **extra}
