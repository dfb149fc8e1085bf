"""Every page that the address map has: no complaint of the browser, nothing foreign, no overflow."""

from __future__ import annotations

import time

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, Request

from tests.factories import UserFactory
from tests.running import PATIENCE_S
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Delivery, Endpoint

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("plain"),
    pytest.mark.slow,
    pytest.mark.timeout(300),  # some sixty pages in a real browser
]

OPEN = [
    "/",
    "/accounts/login",
    "/accounts/password/reset",
    "/accounts/password/reset/sent",
    "/accounts/password/reset/MQ/none",
    "/admin/login/",
    "/docs",
    "/graphql",
]
OWN = [
    "/accounts/clients",
    "/accounts/tokens",
    "/accounts/password",
    "/accounts/sessions",
    "/accounts/two-step",
]
WEBHOOKS = "/admin/webhooks_core/"


def lists() -> list[str]:
    metas = [model._meta for model in admin.site._registry]
    return [
        reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        for meta in metas
    ]


def forms(operator: User) -> list[str]:
    """The pages on which the admin makes something, wherever it may."""
    names = [
        f"admin:{model._meta.app_label}_{model._meta.model_name}_add"
        for model, pages in admin.site._registry.items()
        if pages.has_add_permission(request_of(operator))
    ]
    return [reverse(name) for name in names]


class OpenRequests:
    """The requests of a page that have no answer yet."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)

    def _begin(self, request: Request) -> None:
        self._open.add(request)

    def _end(self, request: Request) -> None:
        self._open.discard(request)

    def wait(self) -> None:
        """Wait until the scripts of a loaded page have run, and what they asked for is there."""
        frame = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
        end = time.monotonic() + PATIENCE_S
        self._page.evaluate(frame)
        while self._open:
            assert time.monotonic() < end, self._open
            self._page.wait_for_timeout(20)
            self._page.evaluate(frame)


def request_of(user: User):
    return type("Request", (), {"user": user})()


def details() -> list[str]:
    delivery, target = Delivery.objects.latest("pk"), Endpoint.objects.get()
    return [
        f"{WEBHOOKS}dispatcherlease/dashboard/",
        f"{WEBHOOKS}event/catalogue/",
        f"{WEBHOOKS}delivery/{delivery.pk}/change/",
        f"{WEBHOOKS}endpoint/{target.pk}/change/",
        f"{WEBHOOKS}event/{delivery.event_id}/change/",
    ]


def test_no_page_complains_loads_anything_foreign_or_overflows(
    live_server, page, complaints
):
    EndpointFactory.create()
    publish_event()
    operator = UserFactory.create(
        superuser=True, username="ada", password="a-long-password"
    )

    requests = OpenRequests(page)

    def visit(path: str) -> None:
        answer = page.goto(f"{live_server.url}{path}")
        assert (path, answer.status) == (path, 200)
        requests.wait()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert (path, wide) == (path, 390)
        assert (path, complaints) == (path, [])

    page.set_viewport_size({"width": 390, "height": 800})
    for path in OPEN:
        visit(path)
    page.goto(f"{live_server.url}/admin/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("a-long-password")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Webhooks dashboard").wait_for()
    pages = ["/admin/", *OWN, *lists(), *forms(operator), *details()]
    assert len(pages) > 40
    for path in pages:
        visit(path)
