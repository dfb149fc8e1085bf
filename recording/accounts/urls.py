"""The pages of an account. django-allauth's are below the same prefix (config/urls.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.views import login
from allauth.mfa.base.views import authenticate
from csp.decorators import csp_replace
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import include, path, reverse

from recording.accounts import views
from recording.webhook_pages import AccountDoor
from webhooks_core.pages.urls import urls as webhook_pages

View = Callable[..., HttpResponseBase]


def for_applications(view: View) -> View:
    """Leave form-action out of a login before an application's request.

    It may end at the application, with an error, and Chromium applies form-action to every
    redirect after a form. The second step does not know what the login is for.
    """
    with_any_form_action = csp_replace({"form-action": None})(view)

    @wraps(view)
    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        address = request.POST.get("next", request.GET.get("next", ""))
        is_for_application = address.startswith(f"{reverse('oauth-authorize')}?")
        chosen = (
            with_any_form_action if is_for_application or view is authenticate else view
        )
        return chosen(request, *args, **kwargs)

    return page


urlpatterns = [
    path("accounts/login/", for_applications(login), name="account_login"),
    path(
        "accounts/2fa/authenticate/",
        for_applications(authenticate),
        name="mfa_authenticate",
    ),
    path("accounts", views.account, name="account"),
    path("accounts/tokens", views.create_token, name="account-create-token"),
    path("accounts/tokens/revoke", views.revoke_token, name="account-revoke-token"),
    path("accounts/disconnect", views.disconnect, name="account-disconnect"),
    path(
        "accounts/webhooks",
        include(webhook_pages(AccountDoor()), namespace="account-webhooks"),
    ),
]
