"""The pages of an account: log in, log out, see and end its connections."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView, LogoutView
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from recording.oauth import logins, parameters, sessions
from recording.oauth.authorization import Authorization
from recording.oauth.errors import InvalidRequestError, TooManyRequestsError
from recording.oauth.models import Application
from recording.oauth.views.authorize import with_form_action


class Login(LoginView):
    """The login page; after it, an application's request goes on where it was."""

    template_name = "accounts/login.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return logins.limited(super().post)(request, *args, **kwargs)

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        # Django drops addresses above 2,048 characters; an application's request may be longer.
        wanted = self.request.POST.get("next", self.request.GET.get("next", ""))
        return wanted if _is_authorization(wanted) else super().get_redirect_url()

    def render_to_response(self, context: Any, **kwargs: Any) -> HttpResponse:
        response = super().render_to_response(context, **kwargs)
        origin = _destination(self.get_redirect_url())
        # The login may end, by way of an error, at the application.
        return with_form_action(self.request, response, origin) if origin else response


class Logout(LogoutView):
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


def _destination(address: str) -> str:
    """Return the origin of the application that this address asks consent for, or nothing."""
    if not _is_authorization(address):
        return ""
    try:
        query = QueryDict(urlsplit(address).query)
        return Authorization.read(parameters.read(query)).redirect_origin
    except InvalidRequestError:
        return ""


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
        if sessions.disconnect(request.user, application):
            messages.success(request, f"{_called(application)} was disconnected.")
        return redirect("account-clients")
    connected = sessions.connected_applications(request.user)
    return render(request, "accounts/clients.html", {"applications": connected})


def _called(application: Application) -> str:
    return application.name or "The application without a name"
