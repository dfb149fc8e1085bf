"""Clients of each shape, and an upstream of each kind for them."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai

from tests.gateway.chat.apis.responses.harness import DELTA, RESPONSE, part
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    TOOL_STREAM,
    USAGE_CHUNK,
    WHOLE_STREAM,
    Received,
    answers,
    event,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    CALL,
    MESSAGE,
    USE,
    block,
    delta,
    sends_events,
    started,
    stopped,
)

TEXT, RESULT, ARGUMENTS = "Hello", "low at Brest", {"at": "Brest"}
SCHEMA = {
    "type": "object",
    "properties": {"at": {"type": "string"}},
    "required": ["at"],
    "additionalProperties": False,
}
FUNCTION = {"name": "tide", "description": "When?", "parameters": SCHEMA}

# ── Upstreams ───────────────────────────────────────────────────────────────────────

ANSWERED: dict[str, Any] = {**RESPONSE, "metadata": {}}
BEGUN = {**ANSWERED, "status": "in_progress", "output": [], "usage": None}
MADE = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "tide",
    "arguments": json.dumps(ARGUMENTS),
}
CALLED: Any = {"index": 0, "finish_reason": "tool_calls"}
PLACE = {"output_index": 0, "item_id": "fc_1"}
BLOCK_END = {"type": "content_block_stop", "index": 0}
# By path: the answers to a request, whether it wants a stream, and whether it gets a call.
ANSWERS: dict[str, dict[tuple[bool, bool], Any]] = {
    "/v1/chat/completions": {
        (False, False): answers(COMPLETION),
        (True, False): sends(*WHOLE_STREAM),
        (False, True): answers(
            {
                **COMPLETION,
                "choices": [
                    {**CALLED, "message": {"role": "assistant", "tool_calls": [CALL]}}
                ],
            }
        ),
        (True, True): sends(*TOOL_STREAM[:-1], event(USAGE_CHUNK), DONE),
    },
    "/v1/messages": {
        (False, False): answers({**MESSAGE, "content": [{"type": "text", "text": TEXT}]}),
        (True, False): sends_events(
            started(),
            block(0, type="text", text=""),
            delta(0, type="text_delta", text=TEXT),
            BLOCK_END,
            *stopped("end_turn"),
        ),
        (False, True): answers({**MESSAGE, "content": [USE], "stop_reason": "tool_use"}),
        (True, True): sends_events(
            started(),
            block(0, **{**USE, "input": {}}),
            delta(0, type="input_json_delta", partial_json=json.dumps(ARGUMENTS)),
            BLOCK_END,
            *stopped("tool_use"),
        ),
    },
    "/v1/responses": {
        (False, False): answers(ANSWERED),
        (True, False): sends(
            part("created", 0, response=BEGUN),
            part("output_item.added", 1, output_index=0, item={**RESPONSE["output"][0], "content": []}),
            part("content_part.added", 1, output_index=0, content_index=0, item_id="msg_1", part={"type": "output_text", "text": "", "annotations": []}),
            DELTA.replace(b'"output_index": 0', b'"output_index": 0, "content_index": 0, "logprobs": []'),
            part("completed", 9, response=ANSWERED),
        ),
        (False, True): answers({**ANSWERED, "output": [MADE]}),
        (True, True): sends(
            part("created", 0, response=BEGUN),
            part("output_item.added", 1, output_index=0, item={**MADE, "arguments": ""}),
            part("function_call_arguments.delta", 2, delta=MADE["arguments"], **PLACE),
            part("function_call_arguments.done", 3, arguments=MADE["arguments"], name="tide", **PLACE),
            part("output_item.done", 4, output_index=0, item=MADE),
            part("completed", 5, response={**ANSWERED, "output": [MADE]}),
        ),
    },
}  # fmt: skip
FAILURES = {"refusing": 400, "failing": 503}
REFUSAL = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}


async def answer(request: Received) -> None:
    """Answer as the API of the path does: a call until its result is there, then text."""
    body = request.json
    if status := FAILURES.get(body["model"]):
        await answers(REFUSAL, status)(request)
        return
    if body["model"] == "broken":
        await sends(STREAM[0], 0.05, None)(request)
        return
    wants_call = bool(body.get("tools")) and RESULT.encode() not in request.body
    await ANSWERS[request.path][body.get("stream") is True, wants_call](request)


# ── Clients ─────────────────────────────────────────────────────────────────────────


class OpenAIChat:
    package, shape = "openai", "/v1/chat/completions"

    def __init__(self, url: str, key: str) -> None:
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)

    def talk(self, model: str, *, stream: bool, tools: bool) -> Iterator[Any]:
        """Yield the arguments of each call, and the text at last."""
        turns: list[Any] = [{"role": "user", "content": TEXT}]
        fields: Any = {"model": model, "messages": turns}
        if tools:
            function = {**FUNCTION, "strict": True}
            fields["tools"] = [{"type": "function", "function": function}]
        while True:
            completions = self.client.chat.completions
            if stream:
                with completions.stream(**fields) as opened:
                    completion: Any = opened.get_final_completion()
            else:
                completion = completions.create(**fields)
            message = completion.choices[0].message
            if not message.tool_calls:
                yield message.content
                return
            turns.append(message.to_dict())
            for call in message.tool_calls:
                yield json.loads(call.function.arguments)
                turns.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})  # fmt: skip


class OpenAIResponses(OpenAIChat):
    shape = "/v1/responses"

    def talk(self, model: str, *, stream: bool, tools: bool) -> Iterator[Any]:
        items: list[Any] = [{"role": "user", "content": TEXT}]
        fields: Any = {"model": model, "input": items}
        if tools:
            fields["tools"] = [{"type": "function", **FUNCTION, "strict": True}]
        while True:
            if stream:
                with self.client.responses.stream(**fields) as opened:
                    opened.until_done()
                    response: Any = opened.get_final_response()
            else:
                response = self.client.responses.create(**fields)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                yield response.output_text
                return
            items += [item.to_dict() for item in response.output]
            for call in calls:
                yield json.loads(call.arguments)
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": RESULT})  # fmt: skip


class AnthropicMessages:
    package, shape = "anthropic", "/v1/messages"

    def __init__(self, url: str, key: str) -> None:
        self.client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)

    def talk(self, model: str, *, stream: bool, tools: bool) -> Iterator[Any]:
        turns: list[Any] = [{"role": "user", "content": TEXT}]
        fields: Any = {"model": model, "max_tokens": 64, "messages": turns}
        if tools:
            tool = {"name": "tide", "description": "When?", "input_schema": SCHEMA}
            fields["tools"] = [tool]
        while True:
            if stream:
                with self.client.messages.stream(**fields) as opened:
                    message: Any = opened.get_final_message()
            else:
                message = self.client.messages.create(**fields)
            uses = [each for each in message.content if each.type == "tool_use"]
            if not uses:
                yield message.content[0].text
                return
            results = [{"type": "tool_result", "tool_use_id": use.id, "content": RESULT} for use in uses]  # fmt: skip
            yield from (use.input for use in uses)
            turns.append({"role": "assistant", "content": message.content})
            turns.append({"role": "user", "content": results})


CLIENTS = (OpenAIChat, OpenAIResponses, AnthropicMessages)
ERRORS = {
    "refusing": (openai.BadRequestError, anthropic.BadRequestError),
    "failing": (openai.InternalServerError, anthropic.InternalServerError),
    "absent": (openai.NotFoundError, anthropic.NotFoundError),
}
