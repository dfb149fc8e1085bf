"""The consent page: an account sees who asks for what, and allows or denies it."""

from __future__ import annotations

from csp.decorators import csp_update
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from recording.oauth import parameters, throttles
from recording.oauth.authorization import AccessDeniedError, Authorization
from recording.oauth.errors import (
    InvalidRequestError,
    MethodNotAllowedError,
    OAuthError,
)

METHODS = ("GET", "HEAD", "POST")


@never_cache
def authorize(request: HttpRequest) -> HttpResponse:
    """GET and POST /oauth/authorize (RFC 6749 section 3.1).

    Everything is read from the address, for the page and for the answer alike: the form carries
    only the decision, so that there is nothing in it to tamper with. Errors go to the
    application after the login, lest this be an open redirector (RFC 9700 section 4.11.2).
    """
    try:
        authorization = _read(request)
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return _decided(request, authorization)
    except OAuthError as error:
        return error_page(request, error)


def _read(request: HttpRequest) -> Authorization:
    if request.method not in METHODS:
        raise MethodNotAllowedError(METHODS)
    throttles.check(request, "authorize")
    return Authorization.read(parameters.read_query(request))


def _decided(request: HttpRequest, authorization: Authorization) -> HttpResponse:
    """Show the page, or take the decision to the application."""
    try:
        authorization.check()
    except OAuthError as error:
        return _away(authorization.refuse(error))
    if request.method != "POST":
        return _consent_page(request, authorization)
    decision = {"allow", "deny"} & request.POST.keys()
    if decision == {"allow"}:
        return _away(authorization.allow(request.user))
    if decision == {"deny"}:
        return _away(authorization.refuse(AccessDeniedError()))
    raise InvalidRequestError("The form holds no decision.")


def _away(address: str) -> HttpResponse:
    """Send the browser on with GET (RFC 9700 section 4.12), without a length limit."""
    return HttpResponse(status=303, headers={"Location": address})


def _consent_page(request: HttpRequest, authorization: Authorization) -> HttpResponse:
    response = render(
        request,
        "oauth/authorize.html",
        {
            "asking": authorization,
            "address": request.get_full_path(),
        },
    )
    return with_form_action(request, response, authorization.redirect_origin)


def with_form_action(
    request: HttpRequest, response: HttpResponse, origin: str
) -> HttpResponse:
    """Let the page's form end at this origin: browsers apply form-action to redirects too.

    A content security policy cannot name an IPv6 address, so that one opens the scheme.
    """
    source = "http:" if "[" in origin else origin
    csp_update({"form-action": [source]})(lambda _request: response)(request)
    return response


def error_page(request: HttpRequest, error: OAuthError) -> HttpResponse:
    """Tell a person what is wrong; nobody is sent anywhere."""
    response = render(
        request, "oauth/error.html", {"error": error}, status=error.status
    )
    for name, value in error.headers.items():
        response[name] = value
    return response
