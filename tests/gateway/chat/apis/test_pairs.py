"""Recorded conversations: what an upstream gets of a client's request, and a client of its answer.

Each file of `pairs/` holds a request, what the upstream gets, what it answers, and what the client
gets. To record a new one, write the first three of its members and run
`python -m pytest tests/gateway/chat/apis/test_pairs.py --record`; then read what it says.
"""

import json
import re
from typing import Any

import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.apis.recorded import FILES, entry_of, script_of

# Ids and times that are made anew for each answer.
MADE = re.compile(
    r"(?<=chatcmpl-)[0-9a-f]{24}|(?<=msg_)[0-9a-f]{24,36}"
    r"|(?<=resp_)[0-9a-f]{32}|(?<=rs_|fc_)[0-9a-f]{36}|(?<=ctc_)[0-9a-f]{36}"
)
TIMES = re.compile(r'"(created|created_at|completed_at)": ?[0-9]+')


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_conversation_is_translated_as_it_was_recorded(
    gateway, upstream, request, file
):
    pair = json.loads(file.read_text())
    target = Target(upstream.url, "there")
    gateway.declare("model", targets=(target,), **entry_of(pair))
    upstream.script = script_of(pair)
    response = gateway.post(json.dumps(pair["request"]), path=pair["path"])
    assert response.status_code == 200, response.text
    sent = upstream.requests[0]
    got = {
        "upstream": {"path": sent.path, "body": json.loads(sent.body)},
        "client": client_side(response),
    }
    if request.config.getoption("--record"):
        file.write_text(json.dumps(pair | got, indent=1, ensure_ascii=False) + "\n")
        return
    assert got["upstream"] == pair["upstream"]
    assert got["client"] == pair["client"]


def client_side(response: Any) -> Any:
    """Return what the client got, with made ids and times left out."""
    text = TIMES.sub(r'"\1": 0', MADE.sub("…", response.text))
    if response.headers["Content-Type"] == "application/json":
        return json.loads(text)
    return [
        data if data == "[DONE]" else json.loads(data)
        for data in re.findall("^data: (.*)$", text, re.MULTILINE)
    ]
