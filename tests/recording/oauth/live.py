"""A running server and a person with a browser, for client libraries that speak HTTP."""

import re
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.running import PATIENCE_S
from tests.tools import node_packages

NODE = Path(__file__).parent / "node"
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass
class Person:
    """Somebody who is logged in and presses Allow."""

    url: str
    session: requests.Session

    def allow(self, address: str) -> str:
        """Open an authorization address, allow it, and return where the browser is sent."""
        page = self.session.get(address, allow_redirects=False, timeout=PATIENCE_S)
        assert page.status_code == 200, page.text
        match = CSRF.search(page.text)
        assert match
        response = self.session.post(
            address,
            data={"csrfmiddlewaretoken": match[1], "allow": "yes"},
            allow_redirects=False,
            timeout=PATIENCE_S,
        )
        assert response.status_code == 303, response.text
        return response.headers["Location"]


def installed_node_clients() -> Path:
    """Return the folder of the Node clients of OAuth and MCP; skip where they cannot be installed."""
    return node_packages(NODE)
