"""The pages of an account: log in, log out, see and end its connections."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView, LogoutView, RedirectURLMixin
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from recording.oauth import connections, logins, parameters
from recording.oauth.authorization import Authorization
from recording.oauth.errors import InvalidRequestError, TooManyRequestsError
from recording.oauth.forms import LoginForm
from recording.oauth.models import Application
from recording.oauth.views.authorize import with_form_action


class KeepsRequest(RedirectURLMixin):
    """Go on where `next` says: on this site, not back to the login, not cut off."""

    request: HttpRequest

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        # Django drops addresses above 2,048 characters; an application's request may be longer.
        wanted = self.request.POST.get("next", self.request.GET.get("next", ""))
        if _is_authorization(wanted):
            return wanted
        url: str = super().get_redirect_url()
        here = {reverse("login"), reverse("logout")}
        return "" if urlsplit(url).path in here else url


class Login(KeepsRequest, LoginView):
    """The login page; after it, an application's request goes on where it was."""

    template_name = "accounts/login.html"
    authentication_form = LoginForm

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            return redirect(self.get_success_url())
        return super().get(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return logins.limited(super().post)(request, *args, **kwargs)

    def render_to_response(self, context: Any, **kwargs: Any) -> HttpResponse:
        asking = _asking(self.get_redirect_url())
        response = super().render_to_response(context | {"asking": asking}, **kwargs)
        if asking is None:
            return response
        # The login may end, by way of an error, at the application.
        return with_form_action(self.request, response, asking.redirect_origin)


class Logout(KeepsRequest, LogoutView):
    """POST ends the browser's session; connections of applications stay."""

    http_method_names = ["post"]


def _is_authorization(address: str) -> bool:
    """Tell whether this is our own consent page, as a path that no browser reads otherwise."""
    path, question, query = address.partition("?")
    return bool(
        question
        and path == reverse("oauth-authorize")
        and not parameters.CONTROL.search(query)
        and len(query) <= parameters.MAX_QUERY
    )


def _asking(address: str) -> Authorization | None:
    """Return the application's request that the login is for, if it is for one."""
    if not _is_authorization(address):
        return None
    try:
        return Authorization.read(parameters.read(QueryDict(urlsplit(address).query)))
    except InvalidRequestError:
        return None


def locked_out(
    request: HttpRequest, response: HttpResponse | None, credentials: Any
) -> HttpResponse:
    """Answer a login that was tried too often."""
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    return logins.refused(
        request,
        TooManyRequestsError(
            "Too many attempts with this user name. Try again later.",
            retry_after=seconds,
        ),
    )


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def clients(request: HttpRequest) -> HttpResponse:
    """List the applications that act for this account; POST ends one's connections."""
    if request.method == "POST":
        application = Application.objects.named(request.POST.get("client_id", ""))
        if application is None:
            raise Http404
        if connections.disconnect(request.user, application):
            messages.success(request, f"{_called(application)} was disconnected.")
        return redirect("account-clients")
    connected = connections.connected_applications(request.user)
    return render(request, "accounts/clients.html", {"applications": connected})


def _called(application: Application) -> str:
    return application.name or "The application without a name"
