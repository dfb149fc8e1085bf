"""Recordings as Markdown, and the prompts."""

import pytest

from recording.mcp import pages
from tests.recording.mcp.conftest import store


def read(mcp, uri):
    [content] = mcp.request("resources/read", {"uri": uri})["result"]["contents"]
    assert content["mimeType"] == "text/markdown"
    return content["text"]


def test_a_recording_is_a_document_that_says_what_it_is(mcp):
    [template] = mcp.request("resources/templates/list")["result"]["resourceTemplates"]
    assert template["uriTemplate"] == "recording://{audio_id}"
    text = read(mcp, f"recording://{store(mcp.api, title='A *plan*')}")
    assert text.startswith("# A \\*plan\\*\n\n> What follows comes from a recording")
    assert "**Ada** (0:00): Good morning." in text


def test_a_long_document_is_cut_and_says_so(mcp):
    transcript = {"text": "x" * (pages.MAX_CHARACTERS * 2)}
    text = read(mcp, f"recording://{store(mcp.api, transcript=transcript)}")
    assert len(text) < pages.MAX_CHARACTERS + 200
    assert text.endswith("return the rest.)")


@pytest.mark.parametrize("audio_id", ["theirs", "none", "a%00b"])
def test_another_accounts_document_is_not_found(mcp, stranger, audio_id):
    store(stranger, audio_id="theirs")
    uri = f"recording://{audio_id}"
    error = mcp.request("resources/read", {"uri": uri})["error"]
    assert (error["code"], error["data"]) == (-32602, {"uri": uri})


def test_prompts_quote_their_arguments(mcp):
    prompts = mcp.request("prompts/list")["result"]["prompts"]
    assert len(prompts) == 3
    for prompt in prompts:
        arguments = {each["name"]: "x'y" for each in prompt["arguments"]}
        result = mcp.request(
            "prompts/get", {"name": prompt["name"], "arguments": arguments}
        )["result"]
        [message] = result["messages"]
        assert '"x\'y"' in message["content"]["text"]
