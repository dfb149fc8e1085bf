"""The audits of the npm package graphql-http."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

AUDITS = Path(__file__).parent / "audits"


def node(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=AUDITS, capture_output=True, text=True, check=False, timeout=110
    )


@pytest.fixture(scope="module")
def audits():
    """The installed audits; skips where there is no node, and offline."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed")
    if not (AUDITS / "node_modules" / "graphql-http").exists():
        done = node("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
        if done.returncode:
            report = pytest.fail if os.environ.get("CI") else pytest.skip
            report(f"npm ci failed: {done.stderr.strip()[-300:]}")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_every_audit_passes(audits, live_server):
    done = node("node", "audit.mjs", f"{live_server.url}/graphql")
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    assert [result for result in results if result["status"] != "ok"] == []
    assert len(results) == 61
