"""The URL map of the whole site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from catalog.views import graphql
from config import admin_site
from config.operations import api_docs, health, home, metrics
from recording.oauth import authorize
from recording.oauth import views as oauth

handler400 = "config.errors.bad_request"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"

admin_site.discover()

urlpatterns = [
    # First what is called most, as Django tries one pattern after another. The gateway comes before
    # recording, whose {endpoint_id} would match the gateway's addresses too.
    path("graphql", graphql),
    path("", include("gateway.urls")),
    path("", include("recording.urls")),
    path("", include("gateway.portal.urls")),
    path("", include("gateway.chat.urls")),
    path("", home.home, name="home"),
    path("favicon.ico", home.favicon),
    path(
        ".well-known/oauth-authorization-server",
        oauth.authorization_server,
        name="oauth-server-metadata",
    ),
    path(".well-known/oauth-protected-resource", oauth.protected_resource),
    path(".well-known/oauth-protected-resource/<path:path>", oauth.protected_resource),
    path("oauth/register", oauth.register),
    path("oauth/authorize", authorize.authorize, name="oauth-authorize"),
    path("oauth/token", oauth.token),
    path("oauth/revoke", oauth.revoke),
    path("", include("recording.accounts.urls")),
    path("accounts/", RedirectView.as_view(pattern_name="account")),
    path("accounts/", include("allauth.urls")),
    path("docs", api_docs.page, name="docs"),
    path("openapi.json", api_docs.document, name="openapi"),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
]
