"""One authorization request: from the address in the browser to the redirect back."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlsplit

from django.conf import settings
from oauthlib.oauth2 import OAuth2Error, UnsupportedResponseTypeError

from recording.oauth import client_documents, redirects
from recording.oauth.errors import InvalidRequestError
from recording.oauth.models import Application
from recording.oauth.parameters import Parameters
from recording.oauth.toolkit import oauthlib_request, server

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
MAX_ADDRESS_SHOWN = 500


class DocumentUnusableError(InvalidRequestError):
    """The client id is the address of a document, and there is none that can be used."""

    description = (
        "The document that describes the application cannot be fetched, is not valid, or is not "
        "allowed here."
    )


class UnregisteredRedirectError(InvalidRequestError):
    """The application did not register this address, so the browser is not sent there."""

    description = "The application did not register this redirect_uri."

    def __init__(self, address: str) -> None:
        super().__init__()
        # A page shows it. Quoted, it can neither read like a sentence nor imitate other letters.
        shown = quote(address[:MAX_ADDRESS_SHOWN], safe=string.punctuation)
        self.address = shown if len(address) <= MAX_ADDRESS_SHOWN else f"{shown}…"


@dataclass(frozen=True)
class Authorization:
    """A request whose redirect address is known to be one of the application's."""

    application: Application
    parameters: Parameters

    @classmethod
    def read(cls, parameters: Parameters, *, may_fetch: bool = False) -> Self:
        """Find the application and check the redirect address.

        Raises InvalidRequestError. It is shown to the user: no browser may be sent to an
        address that was not registered (RFC 6749 section 4.1.2.1).
        """
        parameters.require("client_id", "redirect_uri")
        client_id = parameters.get("client_id")
        application = client_documents.find(client_id, may_fetch=may_fetch)
        if application is None or not application.is_usable():
            if client_documents.is_address(client_id):
                raise DocumentUnusableError
            raise InvalidRequestError("The application is not known here.")
        if not application.redirect_uri_allowed(parameters.get("redirect_uri")):
            raise UnregisteredRedirectError(parameters.get("redirect_uri"))
        return cls(application, parameters)

    @property
    def redirect_uri(self) -> str:
        return self.parameters.get("redirect_uri")

    @property
    def redirect_origin(self) -> str:
        return redirects.origin(self.redirect_uri)

    @property
    def is_native(self) -> bool:
        return redirects.is_native(self.redirect_uri)

    def check(self) -> None:
        """Raise the OAuth2Error that the application receives, if there is one."""
        self.parameters.require("response_type", "code_challenge")
        if self.parameters.get("response_type") != "code":
            raise UnsupportedResponseTypeError("The only response type is code.")
        if self.parameters.get("code_challenge_method") != "S256":
            raise InvalidRequestError("The code_challenge_method must be S256.")
        if not CHALLENGE.fullmatch(self.parameters.get("code_challenge")):
            raise InvalidRequestError(
                "The code_challenge is not a SHA-256 in base64url."
            )
        server().auth_grant.validate_authorization_request(
            self._request(self.application)
        )

    def allow(self, user: Any) -> str:
        """Store a code for this account; return the address that takes it to the application."""
        self.check()
        application = client_documents.store(self.application)
        headers, _, _ = server().auth_grant.create_authorization_response(
            self._request(application, user), server().bearer
        )
        # oauthlib writes the query of the redirect URI again: only what it added is taken.
        query = parse_qsl(urlsplit(headers["Location"]).query)
        return self._redirect_with(
            (name, value) for name, value in query if name in redirects.RESERVED
        )

    def refuse(self, error: OAuth2Error) -> str:
        """Return the address that tells the application why there is no code."""
        error.state = self.parameters.get("state")
        return self._redirect_with(error.twotuples)

    def _request(self, application: Application, user: Any = None) -> Any:
        return oauthlib_request(self.parameters, client=application, user=user)

    def _redirect_with(self, parameters: Iterable[tuple[str, str]]) -> str:
        """Add `iss` too, so that a client of several servers cannot mix them up (RFC 9207)."""
        added = [*parameters, ("iss", settings.BASE_URL)]
        return redirects.with_parameters(self.redirect_uri, added)
