"""The recorded conversations of `pairs/`: a request, what the upstream gets and answers, what the client gets."""

import json
from pathlib import Path
from typing import Any

from tests.gateway.chat.mock_upstream import DONE, answers, event, sends

FILES = sorted((Path(__file__).parent / "pairs").glob("*.json"))
PAIRS: dict[str, Any] = {file.stem: json.loads(file.read_text()) for file in FILES}


def entry_of(pair: Any) -> dict[str, Any]:
    """Return the fields of the pair's endpoint."""
    fields: dict[str, Any] = pair.get("entry", {})
    speaks = frozenset(fields["speaks"]) if "speaks" in fields else None
    return fields | ({"speaks": speaks} if speaks else {})


def api_of(pair: Any) -> str:
    """Return the API that the upstream is asked in."""
    fields = entry_of(pair)
    if fields.get("upstream") == "anthropic":
        return "messages"
    return "responses" if "responses" in fields.get("speaks", ()) else "chat"


def script_of(pair: Any) -> Any:
    """Return what the mock upstream does."""
    answer, api = pair["answer"], api_of(pair)
    if isinstance(answer, dict):
        return answers(answer)
    if api == "messages":
        return sends(*(b"event: %s\n" % e["type"].encode() + event(e) for e in answer))
    return sends(*map(event, answer), *([DONE] if api == "chat" else ()))
