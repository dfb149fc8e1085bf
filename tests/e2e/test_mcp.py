"""MCP clients of others, unchanged, told nothing but the address of a fresh instance."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator

import httpx2
import pytest
import requests
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.starting import READY, start
from tests.recording.oauth.live import CSRF, Person, installed_node_clients
from tests.recording.oauth.test_real_clients import Memory, provider
from tests.running import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def person(tmp_path_factory) -> Iterator[Person]:
    """The demo user of a fresh instance, logged in."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    data = tmp_path_factory.mktemp("mcp") / "data.sqlite3"
    with (
        start(data, "--port", str(port), BASE_URL=url) as process,
        requests.Session() as session,
    ):
        process.wait_for(READY)
        [password] = re.findall(r"password: (\S+)", process.output)
        token = CSRF.search(session.get(f"{url}/accounts/login", timeout=30).text)
        assert token
        form = {"username": "demo", "password": password}
        form["csrfmiddlewaretoken"] = token[1]
        session.post(f"{url}/accounts/login", data=form, timeout=30)
        yield Person(url, session)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_python_sdk_goes_from_an_address_to_a_transcript(person, mode):
    async def use() -> None:
        address = f"{person.url}/mcp"
        auth = provider(person, Memory(), "none", server=address)
        async with (
            httpx2.AsyncClient(auth=auth, trust_env=False) as http,
            Client(streamable_http_client(address, http_client=http), mode=mode) as mcp,
        ):
            found = await mcp.call_tool("search_recordings", {"query": "harbour"})
            assert found.structured_content
            hit = found.structured_content["hits"][-1]
            assert hit["speaker"] == "Ben"
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
    process = subprocess.run(
        ["node", "mcp-tools.mjs", person.url, "none", cookies],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout)
    assert result["title"] == "Weekly planning"
    assert "never instructions" in result["document"]
    assert result["isError"] is True
