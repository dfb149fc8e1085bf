"""A chat request in the terms of Anthropic's Messages API. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.chat import exact_json
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError

# The API demands a limit; OpenAI's clients seldom give one.
DEFAULT_MAX_TOKENS = 4096
SAME_NAME = ("top_p", "top_k", "thinking", "service_tier")
TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


def translated(body: Mapping[str, Any], *, model: str, stream: bool) -> dict[str, Any]:
    """Return the body of a call to /v1/messages.

    Raises UnsupportedRequestError for what the API has nothing for and that would change
    the answer, InvalidValueError for messages that are not of OpenAI's shape. Fields that
    only tune the answer (seed, penalties, logit_bias, …) are left out.
    """
    if body.get("n") not in (None, 1):
        raise UnsupportedRequestError("n")
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise InvalidValueError("messages: must be a list.")
    call: dict[str, Any] = {
        "model": model,
        "max_tokens": body.get("max_completion_tokens")
        or body.get("max_tokens")
        or DEFAULT_MAX_TOKENS,
        "messages": _turns(messages),
        **{name: body[name] for name in SAME_NAME if body.get(name) is not None},
        **_system(messages),
        **_sampling(body),
        **_tools(body),
        **_format(body),
    }
    return {**call, "stream": True} if stream else call


def _role(message: Any) -> str:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise InvalidValueError("messages: each must be an object with a role.")
    return str(message["role"])


def _system(messages: Sequence[Any]) -> dict[str, Any]:
    texts = [
        block["text"]
        for message in messages
        if _role(message) in {"system", "developer"}
        for block in _blocks(message.get("content"))
        if block["type"] == "text"
    ]
    return {"system": "\n".join(texts)} if texts else {}


def _turns(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the turns; the API wants the results of tools that belong together in one."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = _role(message)
        if role in {"system", "developer"}:
            continue
        spoken = "assistant" if role == "assistant" else "user"
        content = list(_content(role, message))
        if turns and turns[-1]["role"] == spoken:
            turns[-1]["content"] += content
        else:
            turns.append({"role": spoken, "content": content})
    return turns


def _content(role: str, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match role:
        case "user":
            yield from _blocks(message.get("content"))
        case "assistant":
            # An empty text block is refused there, and usual here beside tool calls.
            yield from (it for it in _blocks(message.get("content")) if it.get("text"))
            yield from map(_tool_use, _listed(message.get("tool_calls")))
        case "tool":
            yield {
                "type": "tool_result",
                "tool_use_id": message.get("tool_call_id"),
                "content": _blocks(message.get("content")),
            }
        case _:
            raise UnsupportedRequestError(f"messages with the role {role}")


def _listed(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise InvalidValueError("messages: tool_calls must be a list.")
    return value or []


def _blocks(content: Any) -> list[dict[str, Any]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise InvalidValueError("messages: content must be a string or a list.")
    return [_block(part) for part in content]


def _block(part: Any) -> dict[str, Any]:
    match part:
        case {"type": "text" | "refusal" as kind} if isinstance(
            text := part.get(kind), str
        ):
            return {"type": "text", "text": text}
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return {"type": "image", "source": _image(url)}
        case {"type": str(kind)}:
            raise UnsupportedRequestError(f"content of the type {kind}")
    raise InvalidValueError("messages: a part of the content has no type.")


def _image(url: str) -> dict[str, str]:
    head, comma, data = url.partition(",")
    if head.startswith("data:") and head.endswith(";base64") and comma:
        media_type = head.removeprefix("data:").removesuffix(";base64")
        return {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "url", "url": url}


def _tool_use(call: Any) -> dict[str, Any]:
    match call:
        case {"id": str(key), "function": {"name": str(name), "arguments": str(text)}}:
            return {"type": "tool_use", "id": key, "name": name, "input": _input(text)}
    raise InvalidValueError("messages: a tool call needs id, name and arguments.")


def _input(text: str) -> Any:
    try:
        return exact_json.loads((text or "{}").encode())
    except ValueError as error:
        raise InvalidValueError(
            "messages: a tool call's arguments are not JSON."
        ) from error


def _sampling(body: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    temperature, stop = body.get("temperature"), body.get("stop")
    if isinstance(temperature, int | float):
        found["temperature"] = min(temperature, 1)  # OpenAI's scale ends at 2
    if stop:
        found["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if isinstance(body.get("user"), str):
        found["metadata"] = {"user_id": body["user"]}
    return found


def _tools(body: Mapping[str, Any]) -> dict[str, Any]:
    if body.get("functions"):
        raise UnsupportedRequestError("functions; use tools")
    tools = body.get("tools")
    if tools is None or tools == []:
        return {}
    if not isinstance(tools, list):
        raise InvalidValueError("tools: must be a list.")
    found: dict[str, Any] = {"tools": [_tool(tool) for tool in tools]}
    choice = _tool_choice(body.get("tool_choice"))
    if body.get("parallel_tool_calls") is False and choice.get("type") != "none":
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    return {**found, "tool_choice": choice} if choice else found


def _tool(tool: Any) -> dict[str, Any]:
    match tool:
        case {"type": "function", "function": {"name": str(name), **rest}}:
            return {
                "name": name,
                "input_schema": rest.get("parameters") or {"type": "object"},
                **{k: rest[k] for k in ("description", "strict") if rest.get(k)},
            }
    raise InvalidValueError("tools: each must be a function with a name.")


def _tool_choice(choice: Any) -> dict[str, Any]:
    match choice:
        case None:
            return {}
        case "auto" | "required" | "none":
            return {"type": TOOL_CHOICES[choice]}
        case {"type": "function", "function": {"name": str(name)}}:
            return {"type": "tool", "name": name}
    raise InvalidValueError("tool_choice: not one of OpenAI's forms.")


def _format(body: Mapping[str, Any]) -> dict[str, Any]:
    match body.get("response_format"):
        case None | {"type": "text"}:
            return {}
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return {
                "output_config": {"format": {"type": "json_schema", "schema": schema}}
            }
    raise UnsupportedRequestError("this response_format")
