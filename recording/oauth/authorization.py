"""One authorization request, from the address that a browser brought to the redirect back."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from django.conf import settings
from oauthlib.common import add_params_to_uri
from oauthlib.oauth2 import OAuth2Error

from recording.oauth import redirects
from recording.oauth.errors import InvalidRequestError, OAuthError
from recording.oauth.models import Application
from recording.oauth.parameters import Parameters
from recording.oauth.toolkit import request_of, server, translated

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
MAX_SHOWN = 500


class UnregisteredRedirectError(InvalidRequestError):
    """An address that the application did not register; nobody is sent there."""

    description = "The application did not register this redirect_uri."

    def __init__(self, address: str) -> None:
        super().__init__()
        # A page shows it: not as prose, and without letters that look like others.
        shown = quote(address[:MAX_SHOWN], safe=string.punctuation)
        self.address = shown if len(address) <= MAX_SHOWN else f"{shown}…"


class UnsupportedResponseTypeError(OAuthError):
    """Anything but a code."""

    code = "unsupported_response_type"
    description = "The only response type is code."


class AccessDeniedError(OAuthError):
    """The account said no (RFC 6749 section 4.1.2.1)."""

    code = "access_denied"
    description = "The account did not allow it."


@dataclass(frozen=True)
class Authorization:
    """A request whose application and redirect address are known to belong together."""

    application: Application
    parameters: Parameters

    @classmethod
    def read(cls, parameters: Parameters) -> Self:
        """Find the application and check the redirect address.

        Raises InvalidRequestError, which is for the person's eyes: nobody may be sent to an
        address that was not registered (RFC 6749 section 4.1.2.1).
        """
        parameters.require("client_id", "redirect_uri")
        application = Application.objects.named(parameters.get("client_id"))
        if application is None:
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
    def is_loopback(self) -> bool:
        return redirects.is_loopback(self.redirect_uri)

    def check(self) -> None:
        """Raise the OAuthError that the application is to be told, if there is one."""
        self.parameters.require("response_type", "code_challenge")
        if self.parameters.get("response_type") != "code":
            raise UnsupportedResponseTypeError
        if self.parameters.get("code_challenge_method") != "S256":
            raise InvalidRequestError("The code_challenge_method must be S256.")
        if not CHALLENGE.fullmatch(self.parameters.get("code_challenge")):
            raise InvalidRequestError(
                "The code_challenge is not a SHA-256 in base64url."
            )
        request = self._request()
        try:
            server().auth_grant.validate_authorization_request(request)
        except OAuth2Error as error:
            raise translated(error) from error

    def allow(self, user: Any) -> str:
        """Store a code for this account and return the address that takes it to the application."""
        self.check()
        request = self._request(user)
        headers, _, _ = server().auth_grant.create_authorization_response(
            request, server().bearer
        )
        return self._with_issuer(headers["Location"])

    def refuse(self, error: OAuthError) -> str:
        """Return the address that tells the application why there is no code."""
        told = [("error", error.code), ("error_description", error.description)]
        if state := self.parameters.get("state"):
            told.append(("state", state))
        return self._with_issuer(add_params_to_uri(self.redirect_uri, told))

    def _request(self, user: Any = None) -> Any:
        return request_of(self.parameters, client=self.application, user=user)

    @staticmethod
    def _with_issuer(address: str) -> str:
        """Add `iss`, so that a client of several servers cannot be mixed up (RFC 9207)."""
        added: str = add_params_to_uri(address, [("iss", settings.BASE_URL)])
        return added
