"""A running server and a person with a browser, for client libraries that speak HTTP."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

NODE = Path(__file__).parent / "node"
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass
class Person:
    """Somebody who is logged in and presses Allow."""

    url: str
    session: requests.Session

    def allow(self, address: str) -> str:
        """Open an authorization address, allow it, and return where the browser is sent."""
        page = self.session.get(address, allow_redirects=False, timeout=10)
        assert page.status_code == 200, page.text
        match = CSRF.search(page.text)
        assert match
        response = self.session.post(
            address,
            data={"csrfmiddlewaretoken": match[1], "allow": "yes"},
            allow_redirects=False,
            timeout=10,
        )
        assert response.status_code == 303, response.text
        return response.headers["Location"]


def installed_node_clients() -> Path:
    """Return the folder of the Node clients, installed from their lock; skip without Node."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node:
        pytest.skip("node is not installed")
    # One worker installs, the others wait.
    with (NODE / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (NODE / "node_modules" / ".package-lock.json").exists():
            if not npm:
                pytest.skip("the Node clients are not installed, and there is no npm")
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            process = subprocess.run(
                command, cwd=NODE, capture_output=True, text=True, check=False
            )
            if process.returncode:
                pytest.skip(f"npm ci failed: {process.stderr.strip()[-300:]}")
    return NODE
