"""An upstream that has agents call their tools."""

from typing import Any

from tests.gateway.chat.mock_upstream import (
    DONE,
    USAGE_CHUNK,
    WHOLE_STREAM,
    Received,
    calling,
    chunk,
    event,
    sends,
)


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
