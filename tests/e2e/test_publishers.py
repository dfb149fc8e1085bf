"""The publishers of docs/samples/receivers, each with its receiver, at a running instance."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.samples import DOCS, ROOT
from tests.running import free_port
from tests.tools import require

SAMPLES = DOCS / "samples" / "receivers"
COMMANDS = {
    "python": [sys.executable, "publish.py"],
    "node": ["node", "publish.cjs"],
    "go": ["go", "run", "publish.go", "signature.go"],
    "curl": ["sh", "publish.sh"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_script_publishes_and_verifies_what_arrives(name, instance, tmp_path):
    if name != "python":
        require(name)
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "signpost-receiver").symlink_to(ROOT / "clients" / "typescript")
    variables = os.environ | {
        "SIGNPOST_URL": instance.url,
        "SIGNPOST_KEY": instance.gateway_key,
        "PORT": str(free_port()),
        "PYTHONPATH": str(ROOT / "clients" / "python"),
        "NODE_PATH": str(modules),
        "GOCACHE": str(tmp_path / "go"),
        "INBOX": str(tmp_path / "inbox.sqlite3"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    variables.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(
        COMMANDS[name],
        cwd=SAMPLES,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("verified evt_"), done.stdout
