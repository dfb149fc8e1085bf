"""A running server and a person with a browser, for client libraries that speak HTTP."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import httpx2
import requests
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from tests.recording.oauth.flows import REDIRECT, query_of
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


class Memory:
    """Where the SDK keeps what it was given."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def patient(auth: OAuthClientProvider) -> httpx2.AsyncClient:
    """Return a client that does not give up in 5 s: the first MCP message of a server takes one."""
    return httpx2.AsyncClient(auth=auth, trust_env=False, timeout=PATIENCE_S)


def provider(
    person: Person,
    memory: Memory,
    method: str,
    document: str | None = None,
    server: str = "",
) -> OAuthClientProvider:
    """Return the SDK's provider, with a person who allows everything.

    `document` is the address of the client's metadata document, in place of a registration.
    """
    queries: list[str] = []

    async def redirect(address: str) -> None:
        queries.append(await asyncio.to_thread(person.allow, address))

    async def callback() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**query_of(queries[-1]))

    return OAuthClientProvider(
        server_url=server or f"{person.url}/v1/webhooks",
        client_metadata=OAuthClientMetadata.model_validate(
            {
                "redirect_uris": [REDIRECT],
                "client_name": "MCP",
                "token_endpoint_auth_method": method,
            }
        ),
        storage=memory,
        redirect_handler=redirect,
        callback_handler=callback,
        client_metadata_url=document,
    )
