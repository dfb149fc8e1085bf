"""The pages of an account: log in, log out, list and end its connections."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from allauth.account.views import LoginView
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import LogoutView, RedirectURLMixin
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from recording.accounts import logins, security_log
from recording.accounts.views import FORM, account_page
from recording.oauth import grants, parameters
from recording.oauth.authorization import Authorization
from recording.oauth.errors import InvalidRequestError, TooManyRequestsError
from recording.oauth.models import Application
from recording.oauth.views.authorize import with_any_form_action


class NextAddressMixin(RedirectURLMixin):
    """Redirects to `next`: a path on this site, not of the login or logout, complete."""

    request: HttpRequest

    def given_address(self) -> str:
        return self.request.POST.get("next", self.request.GET.get("next", ""))

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        address = self.given_address()
        # Django drops addresses above 2,048 characters; an application's request may be longer.
        if _is_authorization(address):
            return address
        is_safe = url_has_allowed_host_and_scheme(
            address,
            allowed_hosts=self.get_success_url_allowed_hosts(),
            require_https=self.request.is_secure(),
        )
        names = ("account_login", "logout", "mfa_authenticate")
        own = {reverse(name) for name in names}
        path = urlsplit(address).path if is_safe else ""
        return address if path.startswith("/") and path not in own else ""


class LoginPageMixin(NextAddressMixin):
    """Shows which application the login is for; afterwards its request continues."""

    next_page = settings.LOGIN_REDIRECT_URL

    def render_to_response(self, context: Any, **kwargs: Any) -> HttpResponse:
        address = self.get_redirect_url()
        authorization = _authorization(address)
        context |= {"authorization": authorization, "next": address}
        context["sends_email"] = settings.SENDS_EMAIL
        page = super().render_to_response  # type: ignore[misc] # of the view beside it
        response: HttpResponse = page(context, **kwargs)
        if authorization is None:
            return response
        # The form may end at the application, which receives errors after the login.
        return with_any_form_action(self.request, response)


class Login(LoginPageMixin, LoginView):
    """The first page of a login, or its only one."""

    template_name = "accounts/login.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            return redirect(self.get_success_url())
        response: HttpResponse = super().get(request, *args, **kwargs)
        return response

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return logins.limited(super().post)(request, *args, **kwargs)


class Logout(NextAddressMixin, LogoutView):
    """POST ends the browser's session; connections of applications stay."""

    http_method_names = ["post"]


def _is_authorization(address: str) -> bool:
    """Return True for our own consent page, as a path that every browser reads alike."""
    path, question_mark, query = address.partition("?")
    return bool(
        question_mark
        and path == reverse("oauth-authorize")
        and not parameters.CONTROL.search(query)
        and len(query) <= parameters.MAX_QUERY
    )


def _authorization(address: str) -> Authorization | None:
    """Return the application's request that the login is for, if there is one."""
    if not _is_authorization(address):
        return None
    try:
        return Authorization.read(parameters.read(QueryDict(urlsplit(address).query)))
    except InvalidRequestError:
        return None


def locked_out(
    request: HttpRequest, response: HttpResponse | None, credentials: Any
) -> HttpResponse:
    """Return the page after too many failed logins (a hook of django-axes)."""
    name = str(credentials.get("username") or "")
    security_log.record_failure(security_log.Kind.LOCKED, request, name)
    error = TooManyRequestsError(
        "Too many attempts with this user name. Try again later.",
        retry_after=int(settings.AXES_COOLOFF_TIME.total_seconds()),
    )
    return logins.refused(request, error)


@account_page(FORM)
def clients(request: HttpRequest) -> HttpResponse:
    """List the applications that act for this account; POST ends one's connections, or all.

    All end only after a second page has asked (`all=confirmed`).
    """
    applications = grants.connected_applications(request.user)
    context = {"applications": applications, "asks": request.POST.get("all") == "ask"}
    if request.method != "POST" or context["asks"]:
        return render(request, "accounts/clients.html", context)
    if request.POST.get("all") == "confirmed":
        _disconnect(request, None, "All applications", "were")
        return redirect("account-clients")
    application = Application.objects.find(request.POST.get("client_id", ""))
    if application is None:
        raise Http404
    name = application.name or "The application without a name"
    _disconnect(request, application, name, "was")
    return redirect("account-clients")


def _disconnect(
    request: HttpRequest, application: Application | None, name: str, verb: str
) -> None:
    if grants.disconnect(request.user, application):
        security_log.record_own(security_log.Kind.DISCONNECTED, request, name)
        messages.success(request, f"{name} {verb} disconnected.")
