"""The import contracts of pyproject.toml fail when a module breaks them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.running import ROOT

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
PACKAGES = ("benchmarks", "config", "catalog", "recording", "gateway", "webhooks_core")
# A module, what it must not import, and a word of the contract's name.
BROKEN = {
    ("catalog/events.py", "requests"): "connections",
    ("recording/library/importing.py", "socket"): "connections",
    ("gateway/ingest.py", "aiohttp"): "connections",
    ("webhooks_core/publishing.py", "http.client"): "connections",
    ("webhooks_core/models/lookups.py", "ssl"): "connections",
    ("config/operations/links.py", "requests"): "own_requests",
    ("webhooks_core/dispatch/retry.py", "django"): "know no Django",
    ("catalog/books.py", "recording.ids"): "never sideways",
    ("gateway/chat/core/sse.py", "gateway.chat.fallback"): "gateway.chat",
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_every_contract_is_kept_and_fails_for_a_module_that_breaks_it(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in PACKAGES:
        kept = shutil.ignore_patterns("__pycache__", "static", "templates")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=kept)
    sound = lint(tmp_path)
    assert sound.returncode == 0, sound.stdout
    for file, imported in BROKEN:
        with (tmp_path / file).open("a") as module:
            module.write(f"\nimport {imported}\n")
    broken = lint(tmp_path)
    assert broken.returncode == 1
    *_, told = broken.stdout.partition("Broken contracts")
    for file, imported in BROKEN:
        name = file.removesuffix(".py").replace("/", ".")
        first = imported.partition(".")[0]
        package = imported if first in PACKAGES else first
        assert f"{name} -> {package} " in told.replace("\n", " ")


def test_every_contract_has_a_module_above_that_breaks_it():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = [
        contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]
    ]
    for name in names:
        assert any(word in name for word in BROKEN.values()), name
    assert settings["tool"]["importlinter"]["root_packages"] == list(PACKAGES)
