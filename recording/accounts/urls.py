"""The pages of an account. django-allauth's are below the same prefix (config/urls.py)."""

from __future__ import annotations

from django.urls import include, path

from recording.accounts import views
from recording.webhook_pages import AccountDoor
from webhooks_core.pages.urls import urls as webhook_pages

urlpatterns = [
    path("accounts", views.account, name="account"),
    path("accounts/tokens", views.create_token, name="account-create-token"),
    path("accounts/tokens/revoke", views.revoke_token, name="account-revoke-token"),
    path("accounts/disconnect", views.disconnect, name="account-disconnect"),
    path(
        "accounts/webhooks",
        include(webhook_pages(AccountDoor()), namespace="account-webhooks"),
    ),
]
