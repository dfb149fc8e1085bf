"""The messages of a chat request as system and turns of Anthropic's Messages API. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from gateway import json
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.request import MAX_VALUES
from gateway.chat.upstreams.call_ids import replace_ids

Block = dict[str, Any]

SYSTEM = frozenset({"system", "developer"})
COMMON_FIELDS = frozenset({"role", "content", "cache_control"})
# The API takes thinking back only with its own signature, in `thinking_blocks`. These hold
# its text, and signatures of other models (Gemini, LiteLLM), also beside their calls.
SIGNATURES = frozenset({"extra_content", "provider_specific_fields"})
REASONING = SIGNATURES | {
    *("reasoning_content", "reasoning", "reasoning_details", "reasoning_text"),
    *("reasoning_opaque", "reasoning_signature", "thinking"),
}
# OpenAI's client for Python adds them to what its helpers return: the text and the arguments again.
PARSED, PARSED_ARGUMENTS = "parsed", "parsed_arguments"
ANNOTATIONS = "annotations"  # the sources of the text, which a model with a search adds
ASSISTANT_FIELDS = REASONING | {
    *("refusal", "tool_calls", "thinking_blocks", PARSED, ANNOTATIONS),
}
CALL_FIELDS = SIGNATURES | {"id", "type", "function", "index"}
FUNCTION_FIELDS = SIGNATURES | {"name", "arguments", PARSED_ARGUMENTS}
# The fields of messages that are translated, or repeat what the others say.
FIELDS: Mapping[str, frozenset[str]] = {
    "system": COMMON_FIELDS,
    "developer": COMMON_FIELDS,
    "user": COMMON_FIELDS,
    "assistant": COMMON_FIELDS | ASSISTANT_FIELDS,
    "tool": COMMON_FIELDS | {"tool_call_id", "name"},  # the id says which tool it was
}
# Names that clients give to the API's media types.
MEDIA_TYPES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "application/x-pdf": "application/pdf",
}
# A tuple, since an upstream may send a type that cannot be hashed.
THINKING = ("thinking", "redacted_thinking")
# What shows that a block of thinking is the API's own.
PROOFS = {"thinking": "signature", "redacted_thinking": "data"}


def refuse_others(value: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Raise UnsupportedRequestError for fields with a value whose names are not known."""
    others = [name for name in value if name not in known and not is_empty(value[name])]
    if others:
        raise UnsupportedRequestError(f"{where}: {', '.join(others)}")


def is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


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
    if role not in FIELDS:
        other = "; use tool" if role == "function" else ""
        raise UnsupportedRequestError(f"messages with the role {role}{other}")
    refuse_others(message, FIELDS[role], f"messages with the role {role}")
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
                "content": _without_blanks(_content(role, message.get("content"))),
            }
            blocks = [result]
        case _:
            blocks = _content(role, message.get("content"))
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


def _assistant(message: Mapping[str, Any]) -> list[Block]:
    """Return the blocks in the order in which the API sent them."""
    said = _content("assistant", message.get("content"))
    if isinstance(message.get("refusal"), str):
        said.append({"type": "text", "text": message["refusal"]})
    thinking = _list(message, "thinking_blocks")
    calls = map(_tool_use, _list(message, "tool_calls"))
    return [*_in_place(thinking, said), *calls]


def _in_place(thinking: Sequence[Any], said: Sequence[Block]) -> list[Block]:
    """Return the blocks of thinking at their `index` among the others, else before them."""
    merged: list[Block] = []
    others = iter(said)
    for block in thinking:
        index = block.get("index") if isinstance(block, dict) else None
        if isinstance(index, int):
            before = min(index - len(merged), len(said))
            merged += islice(others, max(0, before))
        merged.append(_thinking(block))
    return [*merged, *others]


def _list(message: Mapping[str, Any], name: str) -> list[Any]:
    value = message.get(name)
    if value is not None and not isinstance(value, list):
        raise InvalidValueError(f"messages: {name} must be a list.")
    return value or []


def _content(role: str, content: Any) -> list[Block]:
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
        raise UnsupportedRequestError(f"content of the type {kind}")
    roles, translate = PARTS[kind]
    if role not in roles:
        where = f"content of the type {kind} in messages with the role {role}"
        raise UnsupportedRequestError(where)
    if translate is _thinking:
        return translate(part)
    known = {"type", kind, "cache_control"}
    refuse_others(part, known, f"content of the type {kind}")
    return with_cache_control(translate(part), part)


def _text(part: Mapping[str, Any]) -> Block:
    kind = part["type"]
    if not isinstance(part.get(kind), str):
        raise InvalidValueError(f"messages: a part of the type {kind} has no text.")
    return {"type": "text", "text": part[kind]}


def _image(part: Mapping[str, Any]) -> Block:
    image = part.get("image_url")
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        raise InvalidValueError("messages: an image needs its url.")
    refuse_others(image, {"url", "detail"}, "image_url")
    # Images are always read at full resolution.
    if image.get("detail") not in (None, "auto", "high"):
        raise UnsupportedRequestError("image_url: detail")
    return {"type": "image", "source": _source(image["url"])}


def _source(url: str) -> dict[str, str]:
    if not _is_data(url):
        return {"type": "url", "url": url}
    media_type, data = _data_url(url)
    return {"type": "base64", "media_type": media_type, "data": data}


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
    refuse_others(file, {"filename", "file_data"}, "file")
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


def _thinking(part: Any) -> Block:
    """Return a block as the API sent it: its signature covers exactly this text.

    Without a signature it is another model's, and left out as a blank text is.
    """
    match part:
        case {"type": "thinking", "thinking": str(), "signature": str(proof)} | {
            "type": "redacted_thinking",
            "data": str(proof),
        } if proof:
            return {name: value for name, value in part.items() if name != "index"}
        case dict() if not part.get(PROOFS.get(str(part.get("type")), "")):
            return {"type": "text", "text": ""}
    raise InvalidValueError(
        "messages: a thinking block needs its text and signature, or its data."
    )


def _tool_use(call: Any) -> Block:
    match call:
        case {"id": str(key), "function": {"name": str(name)} as function}:
            refuse_others(call, CALL_FIELDS, "tool_calls")
            refuse_others(function, FUNCTION_FIELDS, "tool_calls")
            arguments = arguments_of(function.get("arguments"))
            return {"type": "tool_use", "id": key, "name": name, "input": arguments}
        case {"type": str(kind)} if kind != "function":
            raise UnsupportedRequestError(f"tool calls of the type {kind}")
    raise InvalidValueError("messages: a tool call needs id, name and arguments.")


def arguments_of(value: Any) -> dict[str, Any]:
    """Return arguments as an object, which the API requires.

    A model may write anything, and stop anywhere: what is no object becomes an empty one.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value.encode(), MAX_VALUES)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


# The types of content: the roles whose messages may have them, and their translation.
PARTS: Mapping[str, tuple[frozenset[str], Callable[[Mapping[str, Any]], Block]]] = {
    "text": (frozenset(FIELDS), _text),
    "refusal": (frozenset({"assistant"}), _text),
    "image_url": (frozenset({"user", "tool"}), _image),
    "file": (frozenset({"user", "tool"}), _file),
    **dict.fromkeys(
        ("thinking", "redacted_thinking", "reasoning"),
        (frozenset({"assistant"}), _thinking),
    ),
}
