"""The addresses of the portal: its links over the API, the page of a link, its pages."""

from __future__ import annotations

from django.urls import include, path

from gateway.portal.api import PortalLinkView, PortalView
from gateway.portal.door import OpenLink, PortalDoor, close
from webhooks_core.pages.urls import urls as webhook_pages

PAGES = webhook_pages(PortalDoor())

urlpatterns = [
    path("v1/portal", PortalView.as_view()),
    path("v1/portal/<str:link_id>", PortalLinkView.as_view()),
    path("portal/open/<str:token>", OpenLink.as_view()),
    path("portal/close", close, name="portal-close"),
    path("portal", include(PAGES, namespace="portal")),
]
