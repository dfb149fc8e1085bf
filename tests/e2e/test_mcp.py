"""MCP clients of others, unchanged, told nothing but the address of a fresh instance."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import requests
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.docs.samples import sample
from tests.e2e.starting import READY, start, variables
from tests.recording.oauth.live import CSRF, Person, installed_node_clients
from tests.recording.oauth.test_real_clients import Memory, provider
from tests.running import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("mcp")
    return folder / "data.sqlite3"


@pytest.fixture(scope="module")
def person(data) -> Iterator[Person]:
    """The demo user of a fresh instance, logged in."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
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


@pytest.fixture(scope="module")
def sample_environment(person, data) -> dict[str, str]:
    """The variables that the programs of the documentation read."""
    token = subprocess.run(
        [sys.executable, "manage.py", "create_personal_token", "demo", "--days=1"],
        env=variables(data),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    own = {"SIGNPOST_MCP": f"{person.url}/mcp", "SIGNPOST_TOKEN": token}
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
    process = subprocess.run(
        command,
        input=sample("connect.md", language, "connect"),
        cwd=folder,
        env=sample_environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert process.returncode == 0, process.stderr
    assert "Weekly planning Ben" in process.stdout


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
