"""The consent page: an account sees which application asks for what, and allows or denies it.

Not the toolkit's view: that skips the consent on request (`approval_prompt=auto`), writes the
address of the application again, and names no issuer in errors (test_authorize.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

from csp.decorators import csp_replace
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from oauthlib.oauth2 import (
    AccessDeniedError,
    OAuth2Error,
    UnsupportedResponseTypeError,
)

from recording.oauth import documents, grants, parameters, redirects
from recording.oauth.errors import OAuthError, error_page, method_not_allowed
from recording.oauth.models import Application
from recording.oauth.parameters import Parameters
from recording.oauth.views import check_rate

METHODS = ("GET", "HEAD", "POST")
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
UNKNOWN = "The application is not known here."
UNUSABLE = (
    "The document that describes the application cannot be fetched, is not valid, or is not "
    "allowed here."
)


@dataclass(frozen=True)
class Authorization:
    """A request whose redirect address is known to be one of the application's."""

    application: Application
    parameters: Parameters

    @classmethod
    def read(cls, parameters: Parameters) -> Self:
        """Find the application and check the redirect address.

        Raises OAuthError. It is shown to the user: no browser may be sent to an address that was
        not registered (RFC 6749 section 4.1.2.1).
        """
        parameters.require("client_id", "redirect_uri")
        client_id = parameters.get("client_id")
        application = documents.find(client_id)
        if application is None or not application.is_usable():
            raise OAuthError(UNUSABLE if documents.is_address(client_id) else UNKNOWN)
        if not application.redirect_uri_allowed(parameters.get("redirect_uri")):
            raise OAuthError("The application did not register this redirect_uri.")
        return cls(application, parameters)

    @property
    def redirect_uri(self) -> str:
        return self.parameters.get("redirect_uri")

    def check(self) -> None:
        """Raise the OAuth2Error that the application receives, if there is one."""
        self.parameters.require("response_type", "code_challenge")
        if self.parameters.get("response_type") != "code":
            raise UnsupportedResponseTypeError("The only response type is code.")
        if self.parameters.get("code_challenge_method") != "S256":
            raise OAuthError("The code_challenge_method must be S256.")
        if not CHALLENGE.fullmatch(self.parameters.get("code_challenge")):
            raise OAuthError("The code_challenge is not a SHA-256 in base64url.")
        self.parameters.check_target()

    def allow(self, user: Any) -> str:
        """Store a code for this account; return the address that takes it to the application.

        Raises OAuthError.
        """
        if (application := documents.store(self.application)) is None:
            raise OAuthError(UNUSABLE)
        code = grants.new_code(application, user, self.parameters)
        state = self.parameters.get("state")
        return self._redirect_with({"code": code} | ({"state": state} if state else {}))

    def refuse(self, error: OAuth2Error) -> str:
        """Return the address that tells the application why there is no code."""
        error.state = self.parameters.get("state")
        return self._redirect_with(dict(error.twotuples))

    def _redirect_with(self, added: dict[str, str]) -> str:
        """Add `iss` too, so that a client of several servers cannot mix them up (RFC 9207)."""
        return redirects.with_parameters(
            self.redirect_uri, added | {"iss": settings.BASE_URL}
        )


@never_cache
def authorize(request: HttpRequest) -> HttpResponse:
    """GET and POST /oauth/authorize (RFC 6749 section 3.1).

    All parameters come from the address, for the page and for the decision alike: the form holds
    only the decision, so nothing in it can be tampered with. Errors go to the application only
    after the login: otherwise this would be an open redirector (RFC 9700 section 4.11.2).
    """
    try:
        if request.method not in METHODS:
            raise method_not_allowed(METHODS)
        check_rate(request, "authorize")
        query = parameters.read_query(request)
        is_known = request.user.is_authenticated
        if not is_known and documents.is_address(query.get("client_id")):
            # Strangers cannot make this server send requests.
            return redirect_to_login(request.get_full_path())
        authorization = Authorization.read(query)
        if not is_known:
            return redirect_to_login(request.get_full_path())
        return _consent(request, authorization)
    except OAuth2Error as error:
        return error_page(request, error)


def _consent(request: HttpRequest, authorization: Authorization) -> HttpResponse:
    """Show the page, or send the decision to the application."""
    try:
        authorization.check()
    except OAuth2Error as error:
        return _redirect(authorization.refuse(error))
    if request.method != "POST":
        uri = authorization.redirect_uri
        context = {
            "application": authorization.application,
            "address": request.get_full_path(),
            "redirect_origin": redirects.origin(uri),
            "is_native": redirects.is_loopback(uri) or redirects.is_private_use(uri),
        }
        response = render(request, "oauth/authorize.html", context)
        return with_any_form_action(request, response)
    decision = {"allow", "deny"} & request.POST.keys()
    if decision == {"allow"}:
        return _redirect(authorization.allow(request.user))
    if decision == {"deny"}:
        denial = AccessDeniedError("The account did not allow it.")
        return _redirect(authorization.refuse(denial))
    raise OAuthError("The form holds no decision.")


def _redirect(address: str) -> HttpResponse:
    """Send the browser on with GET (RFC 9700 section 4.12), to an address of any length."""
    return HttpResponse(status=303, headers={"Location": address})


def with_any_form_action(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Leave form-action out of a page whose form ends at the application.

    Chromium applies it to every redirect after the form, and an application's callback may send
    the browser on to any origin, or to a program by a scheme of its own.
    """
    csp_replace({"form-action": None})(lambda _request: response)(request)
    return response
