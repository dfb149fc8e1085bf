"""The audits of the npm package graphql-http."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.tools import node_packages

AUDITS = Path(__file__).parent / "audits"


def node(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=AUDITS, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def audits():
    """The installed audits; skips where there is no node, and offline."""
    node_packages(AUDITS)


@pytest.mark.slow
def test_every_audit_passes(audits, live_server):
    done = node("node", "audit.mjs", f"{live_server.url}/graphql")
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    assert [result for result in results if result["status"] != "ok"] == []
    assert len(results) == 61
