"""An OAuth client in a few lines, for tests: it registers, asks for consent and gets tokens."""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from django.test import Client

from tests.documented import DocumentedClient

REDIRECT = "http://127.0.0.1:4567/callback"
FORM = "application/x-www-form-urlencoded"
ISSUER = "http://127.0.0.1:8000"
METHODS = ("none", "client_secret_basic", "client_secret_post")
STATE = "a state/with=signs&more"


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636 section 4.2)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def query_of(address: str) -> dict[str, str]:
    """Return the query of an address; each parameter must be there once."""
    query = parse_qs(urlsplit(address).query, strict_parsing=True)
    assert all(len(values) == 1 for values in query.values()), query
    return {name: values[0] for name, values in query.items()}


def basic(name: str, secret: str) -> str:
    """Return HTTP Basic credentials, form-encoded first as RFC 6749 section 2.3.1 wants."""
    pair = f"{quote(name, safe='')}:{quote(secret, safe='')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def refusal(response: Any, status: int = 400) -> str:
    """Return the code of an error of OAuth, whose status must be this one."""
    assert response.status_code == status, response.content
    return str(response.json()["error"])


def register(metadata: object, **options: Any) -> Any:
    """Return the response to a registration, of a body or of its members."""
    client = DocumentedClient(**options)
    return client.post("/oauth/register", metadata, "application/json")


@dataclass
class App:
    """A registered client; `visitor` is where its user is logged in."""

    visitor: Client
    client_id: str
    secret: str = ""
    method: str = "none"
    redirect: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @classmethod
    def registered(
        cls,
        visitor: Client,
        method: str = "none",
        redirect: str = REDIRECT,
        **more: Any,
    ) -> "App":
        metadata: dict[str, Any] = {
            "redirect_uris": [redirect],
            "token_endpoint_auth_method": method,
            "client_name": "Notebook",
        }
        response = register(metadata | more)
        assert response.status_code == 201, response.content
        body = response.json()
        return cls(
            visitor, body["client_id"], body.get("client_secret", ""), method, redirect
        )

    def authorize_query(self, **changes: Any) -> dict[str, str]:
        query: dict[str, Any] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "scope": "mcp:connect",
            "state": STATE,
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
        }
        query.update(changes)
        return {name: value for name, value in query.items() if value is not None}

    def address(self, **changes: Any) -> str:
        return "/oauth/authorize?" + urlencode(self.authorize_query(**changes))

    def decide(self, decision: str = "allow", **changes: Any) -> dict[str, str]:
        """Press a button on the consent page; returns the query that the client receives."""
        response = self.visitor.post(self.address(**changes), {decision: "yes"})
        assert response.status_code == 303, response.content
        assert response["Location"].startswith(self.redirect), response["Location"]
        return query_of(response["Location"])

    def code(self, **changes: Any) -> str:
        return self.decide(**changes)["code"]

    def post(self, path: str, form: dict[str, str], **headers: str) -> Any:
        """Send a form with this client's own authentication."""
        form = {"client_id": self.client_id} | form
        if self.method == "client_secret_basic":
            headers.setdefault("authorization", basic(self.client_id, self.secret))
        elif self.method == "client_secret_post":
            form = {"client_secret": self.secret} | form
        return DocumentedClient().post(path, urlencode(form), FORM, headers=headers)

    def exchange_form(self, code: str) -> dict[str, str]:
        return {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect,
            "code_verifier": self.verifier,
        }

    def exchange(self, code: str, changes: dict[str, str] | None = None) -> Any:
        return self.post("/oauth/token", self.exchange_form(code) | (changes or {}))

    def refresh(self, token: str, **changes: str) -> Any:
        form = {"grant_type": "refresh_token", "refresh_token": token}
        return self.post("/oauth/token", form | changes)

    def revoke(self, token: str, **changes: str) -> Any:
        return self.post("/oauth/revoke", {"token": token} | changes)

    def tokens(self, **changes: Any) -> dict[str, Any]:
        response = self.exchange(self.code(**changes))
        assert response.status_code == 200, response.content
        body: dict[str, Any] = response.json()
        return body
