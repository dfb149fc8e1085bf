"""Generated conversations, both ways, judged by the models of OpenAI's own client.

Its types of chat messages judge the requests that the upstream gets, and its types of responses
and events the answers that the client gets.
"""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import TypeAdapter

from gateway.chat.apis.openai.reader import ChatReader
from gateway.chat.apis.responses.request import translate
from gateway.chat.apis.responses.tools import read
from gateway.chat.apis.responses.writer import ResponsesWriter
from gateway.chat.streams import TranslatedStream
from tests.gateway.chat.apis.responses.harness import PATCH, TIDE, events_of
from tests.gateway.chat.mock_upstream import HEAD, USAGE

MESSAGE: TypeAdapter[Any] = TypeAdapter(ChatCompletionMessageParam)
TOOL: TypeAdapter[Any] = TypeAdapter(ChatCompletionToolUnionParam)
ITEM: TypeAdapter[Any] = TypeAdapter(ResponseInputItemParam)
IS_LONG = settings.get_current_profile_name() == "long"
REQUEST = {"input": "x", "tools": [TIDE, PATCH]}
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12
)
ARGUMENTS = st.dictionaries(TEXTS, TEXTS, max_size=2).map(json.dumps)
CONVERSATIONS = settings(max_examples=500 if IS_LONG else 40, deadline=None)


# ── Answers ─────────────────────────────────────────────────────────────────────────

# A step of a model: what it thinks, says, refuses, or calls.
STEPS = st.one_of(
    st.tuples(st.just("reasoning_content"), TEXTS),
    st.tuples(st.just("content"), TEXTS),
    st.tuples(st.just("refusal"), TEXTS),
    st.tuples(st.just("tide"), ARGUMENTS),
    st.tuples(st.just("apply_patch"), TEXTS.map(lambda t: json.dumps({"input": t}))),
    st.tuples(st.just("absent"), ARGUMENTS),
)
REASONS = st.sampled_from(["stop", "length", "content_filter", "tool_calls"])


def deltas(steps: list[tuple[str, str]], cut: int) -> list[dict[str, Any]]:
    """Return the deltas of a stream; each text comes in two parts."""
    parts: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    calls = 0
    for name, text in steps:
        halves = [half for half in (text[:cut], text[cut:]) if half]
        if name in {"reasoning_content", "content", "refusal"}:
            parts += [{name: half} for half in halves]
            continue
        call = {"index": calls, "id": f"call_{calls}", "function": {"name": name}}
        parts.append({"tool_calls": [call]})
        parts += [
            {"tool_calls": [{"index": calls, "function": {"arguments": half}}]}
            for half in halves
        ]
        calls += 1
    return parts


def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return json.dumps({**HEAD, "choices": [choice]}).encode()


def writer() -> ResponsesWriter:
    tools = read(REQUEST["tools"])
    return ResponsesWriter(REQUEST, "small", tools, lambda: 1)


def streamed(parts: list[dict[str, Any]], reason: str) -> list[dict[str, Any]]:
    events = TranslatedStream(ChatReader(), writer(), None, done_completes=False)
    payloads = [*map(chunk, parts), chunk({}, reason)]
    usage = json.dumps({**HEAD, "choices": [], "usage": USAGE}).encode()
    events.feed([*payloads, usage])
    return events_of(events.flush() + events.end())


def without_ids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in item.items() if k not in {"id", "status"}} for item in items
    ]


@CONVERSATIONS
@given(st.lists(STEPS, max_size=6), st.integers(0, 8), REASONS)
def test_every_stream_is_one_of_openais(steps, cut, reason):
    last = streamed(deltas(steps, cut), reason)[-1]
    response = Response.model_validate(last["response"])
    said = "".join(text for name, text in steps if name == "content")
    assert response.output_text == said
    calls: list[Any] = [i for i in response.output if i.type.endswith("_call")]
    expected = [step for step in steps if step[0] in {"tide", "absent", "apply_patch"}]
    assert len(calls) == len(expected)
    for call, (name, arguments) in zip(calls, expected, strict=True):
        assert call.name == name
        if call.type == "custom_tool_call":
            assert call.input == json.loads(arguments)["input"]
        else:
            assert call.arguments == arguments
    for item in last["response"]["output"]:
        ITEM.validate_python(item)  # the client can send it back


@CONVERSATIONS
@given(st.lists(STEPS, max_size=6), REASONS)
def test_an_answer_at_once_has_the_items_of_its_stream(steps, reason):
    # A completion has its reasoning, its text and its calls in this order.
    order = ("reasoning_content", "content", "refusal")
    steps = sorted(steps, key=lambda s: order.index(s[0]) if s[0] in order else 3)
    message: dict[str, Any] = {}
    for name, text in steps:
        if name in order:
            message[name] = message.get(name, "") + text
        else:
            calls = message.setdefault("tool_calls", [])
            function = {"name": name, "arguments": text}
            calls.append({"id": f"call_{len(calls)}", "function": function})
    choice = {"message": message, "finish_reason": reason}
    answer = writer()
    for each in ChatReader().whole({"choices": [choice]}):
        answer.add(each)
    response = answer.whole()
    Response.model_validate(response)
    last = streamed(deltas(steps, 3), reason)[-1]
    assert without_ids(response["output"]) == without_ids(last["response"]["output"])


# ── Requests ────────────────────────────────────────────────────────────────────────

IMAGE = {"type": "input_image", "image_url": "https://x/a.png", "detail": "auto"}
USER_PARTS = st.one_of(
    TEXTS.map(lambda text: {"type": "input_text", "text": text}), st.just(IMAGE)
)
SAID = TEXTS.map(lambda t: {"type": "output_text", "text": t, "annotations": []})
OUTPUTS = st.one_of(st.just(""), TEXTS, st.lists(USER_PARTS, max_size=3))


def pair(number: int, arguments: str, output: Any) -> list[dict[str, Any]]:
    key = f"call_{number}"
    call = {"type": "function_call", "call_id": key, "name": "tide"}
    done = {"type": "function_call_output", "call_id": key, "output": output}
    return [{**call, "arguments": arguments}, done]


TURNS = st.one_of(
    st.tuples(st.sampled_from(["user", "developer", "system"]), TEXTS).map(
        lambda pair: [{"role": pair[0], "content": pair[1]}]
    ),
    st.lists(USER_PARTS, min_size=1, max_size=3).map(
        lambda parts: [{"type": "message", "role": "user", "content": parts}]
    ),
    st.lists(SAID, min_size=1, max_size=2).map(
        lambda parts: [
            {
                "type": "message",
                "role": "assistant",
                "id": "m",
                "status": "completed",
                "content": parts,
            }
        ]
    ),
    st.builds(pair, st.integers(0, 99), ARGUMENTS, OUTPUTS),
    TEXTS.map(
        lambda text: [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": text}],
            }
        ]
    ),
)


@CONVERSATIONS
@given(st.lists(TURNS, max_size=8), st.none() | TEXTS)
def test_every_conversation_is_one_that_openai_takes(turns, instructions):
    items = [item for turn in turns for item in turn]
    for item in items:
        ITEM.validate_python(item)
    body = {"input": items, "instructions": instructions, "tools": [TIDE, PATCH]}
    chat = translate(body, "small")[0]
    for message in chat["messages"]:
        MESSAGE.validate_python(message)
    for tool in chat["tools"]:
        TOOL.validate_python(tool)
    _check_results_follow_their_calls(chat["messages"])


def _check_results_follow_their_calls(messages: list[dict[str, Any]]) -> None:
    """OpenAI refuses a result whose call is not in the assistant's message before."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls
        else:
            open_calls = {call["id"] for call in message.get("tool_calls", ())}
