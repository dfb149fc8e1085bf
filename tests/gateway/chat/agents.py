"""An upstream that has agents call their tools."""

from typing import Any

from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    USAGE_CHUNK,
    WHOLE_STREAM,
    Received,
    answers,
    calling,
    chunk,
    event,
    sends,
)

CHAT_CALL = {"id": "functions.x:0", "type": "function"}


def calls(name: str, arguments: str) -> Any:
    """Answer a request with a call of a tool until it has the result, then with text."""

    async def script(request: Received) -> None:
        body = request.json
        is_done = any(turn["role"] == "tool" for turn in body["messages"])
        function = {"name": name, "arguments": arguments}
        if body["model"] == "refusing":
            await answers({"error": {"message": "no"}}, 400)(request)
        elif body.get("tools") and not is_done:
            call = {**CHAT_CALL, "index": 0, "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            if body.get("stream"):
                end = event(chunk(finish="tool_calls"))
                await sends(calling(call), end, event(USAGE_CHUNK), DONE)(request)
            else:
                await answers({**COMPLETION, "choices": [choice]})(request)
        elif body.get("stream"):
            is_broken = body["model"] == "broken"
            parts = (STREAM[0], 0.05, None) if is_broken else WHOLE_STREAM
            await sends(*parts)(request)
        else:
            await answers(COMPLETION)(request)

    return script


def plan(*steps: tuple[str, str]) -> Any:
    """Answer a request with the call that follows the results so far, at last with text."""

    async def script(request: Received) -> None:
        done = sum(turn["role"] == "tool" for turn in request.json["messages"])
        if done == len(steps):
            await sends(*WHOLE_STREAM)(request)
            return
        name, arguments = steps[done]
        function = {"name": name, "arguments": arguments}
        call = {"index": 0, "id": f"functions.x:{done}", "function": function}
        end = event(chunk(finish="tool_calls"))
        await sends(calling(call), end, event(USAGE_CHUNK), DONE)(request)

    return script


def names_of(body: Any) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}
