"""The input of a Responses request as messages of a chat request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gateway import json
from gateway.chat.apis import carried
from gateway.chat.apis.base import leave_out, translating
from gateway.chat.apis.openai.reader import THOUGHTS
from gateway.chat.apis.responses.tools import arguments_of, flat_name
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError

Message = dict[str, Any]

# Many servers have templates for these roles alone; OpenAI reads system as developer.
ROLES = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
NO_ARGUMENTS = "{}"  # an empty text is no JSON, and some servers read it
RESULTS = (
    *("function_call_output", "custom_tool_call_output", "local_shell_call_output"),
)
# How the kinds of items end that only the server made which ran their tools, or shortened them.
HOSTED = (
    *("_call", "_output", "_request", "_response", "_list_tools"),
    *("_snapshot", "compaction"),
)


def messages(body: Mapping[str, Any], model: str) -> list[Message]:
    """Return the instructions and the input. Raises InvalidValueError, UnsupportedRequestError."""
    given = body.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise InvalidValueError("input: must be a text or a list of items.")
    conversation = Conversation(model)
    if instructions := body.get("instructions"):
        conversation.add({"role": "system", "content": instructions})
    for number, item in enumerate(given):
        with translating(f"input[{number}]"):
            conversation.read(item)
    return conversation.end()


class Conversation:
    """Messages that grow item by item.

    What the assistant says and calls in a row is one message. Images that a tool returned follow
    all results, in a message of the user, since OpenAI's API takes only text in results.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._messages: list[Message] = []
        self._images: list[dict[str, Any]] = []
        self._reasoning: list[dict[str, Any]] = []
        self._blocks = 0  # of the last message of the assistant

    def add(self, message: Message) -> None:
        self._flush()
        self._messages.append(message)

    def end(self) -> list[Message]:
        self._flush()
        return self._messages

    def read(self, item: Any) -> None:
        """Add an item. Raises UnsupportedRequestError.

        Items of tools that a server of the API has itself are left out: other servers have not
        made them, and the conversation can go on without them.
        """
        kind = item.get("type") or "message"
        match kind:
            case "message":
                self._message(item)
            case "function_call":
                self._call(item, item["arguments"])
            case "custom_tool_call":
                self._call(item, arguments_of(item["input"]))
            case "reasoning":
                # What another server encrypted has no effect.
                if fields := carried.unpack(item.get("encrypted_content")):
                    self._reasoning.append(fields)
            case _ if kind in RESULTS:
                self._result(item, item.get("output"))
            # Tools that the client runs; a search without an id is the server's.
            case "local_shell_call":
                self._call({**item, "name": "local_shell"}, _text(item.get("action")))
            case "tool_search_call" if item.get("call_id"):
                self._call(
                    {**item, "name": "tool_search"}, _text(item.get("arguments"))
                )
            case "tool_search_output" if item.get("call_id"):
                self._result(item, _text(item.get("tools")))
            case _ if kind.endswith(HOSTED):
                leave_out(self._model, (f"input.{kind}",))
            case _:
                raise UnsupportedRequestError(f"input of the type {kind}")

    def _flush(self) -> None:
        """Add the images of the results that came last."""
        if self._images:
            images, self._images = self._images, []
            self._messages.append({"role": "user", "content": images})

    def _assistant(self) -> Message:
        """Return the assistant's message that items belong to."""
        self._flush()
        if not self._messages or self._messages[-1]["role"] != "assistant":
            self._messages.append({"role": "assistant", "content": None})
            self._blocks = 0
        message = self._messages[-1]
        for fields in self._reasoning:
            self._think(message, fields)
        self._reasoning = []
        self._blocks += 1
        return message

    def _think(self, message: Message, fields: Mapping[str, Any]) -> None:
        for name in THOUGHTS:
            if isinstance(fields.get(name), str):
                message[name] = message.get(name, "") + fields[name]
        if isinstance(block := fields.get("block"), dict):
            blocks = message.setdefault("thinking_blocks", [])
            calls = len(message.get("tool_calls", ()))
            blocks.append({**block, "index": self._blocks, "calls": calls})
            self._blocks += 1

    def _message(self, item: Mapping[str, Any]) -> None:
        role, content = ROLES.get(str(item.get("role"))), item.get("content")
        if role is None:
            raise UnsupportedRequestError(f"the role {item.get('role')}")
        if role == "assistant":
            self._say(content)
            return
        self._reasoning = []
        parts = _parts(content)
        texts = [part["text"] for part in parts if part["type"] == "text"]
        is_text = len(texts) == len(parts) == 1
        self.add({"role": role, "content": texts[0] if is_text else parts})

    def _say(self, content: Any) -> None:
        message = self._assistant()
        for name, kind in (("content", "text"), ("refusal", "refusal")):
            texts = [part[kind] for part in _parts(content) if part["type"] == kind]
            if texts:
                message[name] = (message.get(name) or "") + "".join(texts)

    def _call(self, item: Mapping[str, Any], arguments: str) -> None:
        own, extra = carried.split(item["call_id"])
        flat = flat_name(item["name"], item.get("namespace"))
        function = {"name": flat, "arguments": arguments or NO_ARGUMENTS}
        call = {"id": own, "type": "function", "function": function, **extra}
        self._assistant().setdefault("tool_calls", []).append(call)

    def _result(self, item: Mapping[str, Any], output: Any) -> None:
        own, _ = carried.split(item["call_id"])
        parts = _parts(output)
        content = "\n".join(part["text"] for part in parts if part["type"] == "text")
        self._messages.append({"role": "tool", "tool_call_id": own, "content": content})
        self._images += [part for part in parts if part["type"] != "text"]


def _text(value: Any) -> str:
    return json.dumps(value or {}).decode()


def _parts(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a message. Raises UnsupportedRequestError."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_part(part) for part in content or ()]


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": text}:
            return {"type": "refusal", "refusal": text}
        case {"type": "input_image", "image_url": str(url)}:
            image = {"url": url, **_given(part, ("detail",))}
            return {"type": "image_url", "image_url": image}
        case {"type": "input_file", "file_data": str()}:
            return {"type": "file", "file": _given(part, ("filename", "file_data"))}
        case {"type": "input_audio", "input_audio": audio}:
            return {"type": "input_audio", "input_audio": audio}
        case {"type": "input_image" | "input_file" as kind}:
            names = ", ".join(_given(part, ("file_id", "file_url"))) or "no data"
            raise UnsupportedRequestError(f"{kind}: {names}")
    raise UnsupportedRequestError(f"content of the type {part['type']}")


def _given(part: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: part[name] for name in names if part.get(name) is not None}
