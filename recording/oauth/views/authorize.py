"""The consent page: an account sees which application asks for what, and allows or denies it."""

from __future__ import annotations

from csp.decorators import csp_replace
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from oauthlib.oauth2 import AccessDeniedError, OAuth2Error

from recording.oauth import client_documents, parameters, throttles
from recording.oauth.authorization import Authorization
from recording.oauth.errors import (
    InvalidRequestError,
    MethodNotAllowedError,
    error_page,
)

METHODS = ("GET", "HEAD", "POST")


@never_cache
def authorize(request: HttpRequest) -> HttpResponse:
    """GET and POST /oauth/authorize (RFC 6749 section 3.1).

    All parameters come from the address, for the page and for the decision alike: the form holds
    only the decision, so nothing in it can be tampered with. Errors go to the application only
    after the login: otherwise this would be an open redirector (RFC 9700 section 4.11.2).
    """
    try:
        if request.method not in METHODS:
            raise MethodNotAllowedError(METHODS)
        throttles.check(request, "authorize")
        query = parameters.read_query(request)
        is_stranger = not request.user.is_authenticated
        if is_stranger and client_documents.is_missing(query.get("client_id")):
            return redirect_to_login(request.get_full_path())
        # Strangers cannot make this server send requests.
        authorization = Authorization.read(query, may_fetch=not is_stranger)
        if is_stranger:
            return redirect_to_login(request.get_full_path())
        return _consent(request, authorization)
    except OAuth2Error as error:
        return error_page(request, "oauth/error.html", error)


def _consent(request: HttpRequest, authorization: Authorization) -> HttpResponse:
    """Show the page, or send the decision to the application."""
    try:
        authorization.check()
    except OAuth2Error as error:
        return _redirect(authorization.refuse(error))
    if request.method != "POST":
        context = {"authorization": authorization, "address": request.get_full_path()}
        response = render(request, "oauth/authorize.html", context)
        return with_any_form_action(request, response)
    decision = {"allow", "deny"} & request.POST.keys()
    if decision == {"allow"}:
        address = authorization.allow(request.user)
        return _redirect(address)
    if decision == {"deny"}:
        denial = AccessDeniedError("The account did not allow it.")
        return _redirect(authorization.refuse(denial))
    raise InvalidRequestError("The form holds no decision.")


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
