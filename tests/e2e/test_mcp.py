"""MCP clients of others, unchanged, told nothing but the address of a fresh instance."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterator

import pytest
import requests
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.docs.samples import sample
from tests.e2e.starting import Instance, log_in, started
from tests.recording.oauth.live import (
    Memory,
    Person,
    installed_node_clients,
    patient,
    provider,
)
from tests.tools import output_of


@pytest.fixture(scope="module")
def fresh(tmp_path_factory, migrated_file) -> Iterator[Instance]:
    """An instance of its own: other tests import recordings, and these search for the demo's."""
    data = tmp_path_factory.mktemp("mcp") / "data.sqlite3"
    shutil.copy(migrated_file, data)
    with started(data, "--no-worker") as instance:
        yield instance


@pytest.fixture(scope="module")
def person(fresh) -> Iterator[Person]:
    """The demo user, logged in."""
    with requests.Session() as session:
        log_in(session, fresh.url, fresh.password)
        yield Person(fresh.url, session)


@pytest.fixture
def sample_environment(fresh) -> dict[str, str]:
    """The variables that the programs of the documentation read."""
    own = {"SIGNPOST_MCP": f"{fresh.url}/mcp", "SIGNPOST_TOKEN": fresh.token}
    return {"PATH": os.environ["PATH"], **own}


@pytest.mark.parametrize(
    ("language", "command"),
    [
        ("python", [sys.executable, "-"]),
        ("javascript", ["node", "--input-type=module", "-"]),
    ],
)
def test_a_program_of_the_documentation_searches(sample_environment, language, command):
    folder = installed_node_clients() if language == "javascript" else None
    output = output_of(
        command,
        input=sample("connect.md", language, "connect"),
        cwd=folder,
        env=sample_environment,
    )
    assert "Weekly planning" in output
    assert "Harbour project" in output


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_python_sdk_goes_from_an_address_to_a_transcript(person, mode):
    async def use() -> None:
        address = f"{person.url}/mcp"
        auth = provider(person, Memory(), "none", server=address)
        async with (
            patient(auth) as http,
            Client(streamable_http_client(address, http_client=http), mode=mode) as mcp,
        ):
            found = await mcp.call_tool("search_recordings", {"query": "harbour"})
            assert found.structured_content
            [hit] = found.structured_content["hits"]
            assert "Harbour project" in hit["snippet"]
            wanted = {"audio_id": hit["audio_id"], "part": "segments"}
            read = await mcp.call_tool("get_transcript", wanted)
            assert read.structured_content
            assert read.structured_content["segments"][0]["text"] == "Good morning."
            refused = await mcp.call_tool("get_recording", {"audio_id": "none"})
            assert refused.is_error
            templates = await mcp.list_resource_templates()
            assert templates.resource_templates
            assert len((await mcp.list_prompts()).prompts) == 3

    asyncio.run(use())


def test_the_typescript_sdk_goes_from_an_address_to_a_document(person):
    folder = installed_node_clients()
    cookies = "; ".join(f"{each.name}={each.value}" for each in person.session.cookies)
    output = output_of(
        ["node", "mcp-tools.mjs", person.url, "none", cookies],
        cwd=folder,
    )
    result = json.loads(output)
    assert result["title"] == "Weekly planning"
    assert "never instructions" in result["document"]
    assert result["isError"] is True
