"""The URL map of the whole site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from catalog.views import graphql
from config.operations import api_docs, guides, health, home, metrics, stream_probe
from recording.accounts.views import (
    confirm,
    overview,
    pages,
    passwords,
    second_factor,
    second_step,
    security_log,
    sessions,
    tokens,
)
from recording.oauth.views import api, authorize
from recording.webhook_pages import AccountDoor
from webhooks_core.pages.urls import urls as webhook_pages

handler400 = "config.errors.bad_request"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"

urlpatterns = [
    path("", home.home, name="home"),
    path(
        ".well-known/oauth-authorization-server",
        api.authorization_server,
        name="oauth-server-metadata",
    ),
    path(".well-known/oauth-protected-resource", api.protected_resource),
    path(".well-known/oauth-protected-resource/<path:path>", api.protected_resource),
    path("oauth/register", api.register),
    path("oauth/authorize", authorize.authorize, name="oauth-authorize"),
    path("oauth/token", api.token),
    path("oauth/revoke", api.revoke),
    path("accounts", overview.overview, name="account-overview"),
    path("accounts/", RedirectView.as_view(pattern_name="account-overview")),
    path("accounts/login", pages.Login.as_view(), name="login"),
    path(
        "accounts/login/code",
        second_step.SecondStep.as_view(),
        name="login-second-step",
    ),
    path("accounts/logout", pages.Logout.as_view(), name="logout"),
    path("accounts/confirm", confirm.confirm, name="account-confirm"),
    path(
        "accounts/webhooks",
        include(webhook_pages(AccountDoor()), namespace="account-webhooks"),
    ),
    path("accounts/clients", pages.clients, name="account-clients"),
    path("accounts/tokens", tokens.tokens_page, name="account-tokens"),
    path("accounts/tokens/revoke", tokens.revoke, name="account-token-revoke"),
    path("accounts/password", passwords.Change.as_view(), name="account-password"),
    path("accounts/password/reset", passwords.Reset.as_view(), name="password-reset"),
    path(
        "accounts/password/reset/sent",
        passwords.ResetSent.as_view(),
        name="password-reset-sent",
    ),
    path(
        "accounts/password/reset/<uidb64>/<token>",
        passwords.ResetConfirm.as_view(),
        name="password-reset-confirm",
    ),
    path(
        "accounts/security-log",
        security_log.security_log,
        name="account-security-log",
    ),
    path("accounts/sessions", sessions.sessions, name="account-sessions"),
    path(
        "accounts/two-step",
        second_factor.second_factor,
        name="account-second-factor",
    ),
    path("graphql", graphql),
    # Before recording's {endpoint_id}, which would match the gateway's too.
    path("", include("gateway.urls")),
    path("", include("gateway.chat.urls")),
    path("", include("recording.urls")),
    path("docs", api_docs.page, name="docs"),
    path("guides/", guides.guide, name="guides"),
    path("guides/<path:name>", guides.guide, name="guide"),
    path("openapi.json", api_docs.document, name="openapi"),
    path("healthz", health.healthz),
    path("healthz/stream", stream_probe.stream),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("admin/", admin.site.urls),
]
