"""Every page that the address map has: no complaint of the browser, nothing foreign, no overflow.

On the pages of accounts and tenants axe-core finds nothing either.
"""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, Request

from gateway import keys, policy, static_subscriptions
from gateway.chat.metering import usage
from gateway.chat.metering.budget_rows import CounterKey, add_to_rows
from gateway.chat.metering.windows import start_of
from gateway.chat.models import Budget, RequestRecord
from gateway.configuration.shapes import (
    Configuration,
    StaticSubscription,
    WebhookSettings,
)
from gateway.identity import Caller
from gateway.models import GatewayKey
from gateway.portal import links
from tests.browser.axe import pages_of, script, violations
from tests.browser.login import open_admin
from tests.docs.filling import fill_products
from tests.gateway.chat.factories import RequestRecordFactory, ended
from tests.gateway.client import Api
from tests.receiver import receiver
from tests.running import PATIENCE_S
from tests.webhooks_core.admin.looking import NOWHERE, SCRIPT
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_events
from webhooks_core import tasks
from webhooks_core.models import Delivery, Endpoint

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("plain"),
]

OPEN = [
    *("/", "/docs", "/graphql", "/admin/login/", "/accounts/login/"),
    *("/accounts/password/reset/", "/accounts/password/reset/done/"),
    *("/accounts/password/reset/key/1-none/", "/accounts/signup/"),
]
OWN = [
    "/accounts",
    *("/accounts/password/change/", "/accounts/email/", "/accounts/logout/"),
    *("/accounts/2fa/", "/accounts/2fa/totp/activate/", "/accounts/reauthenticate/"),
    *("/accounts/2fa/webauthn/", "/accounts/2fa/webauthn/add/"),
    *("/accounts/webhooks", "/accounts/webhooks/add", "/accounts/webhooks/deliveries"),
]


def fill() -> None:
    """Make rows of every kind, with long and hostile content."""
    fill_products(2)
    with receiver(200, 500) as server:
        server.answer = SCRIPT.encode()
        EndpointFactory.create(url=f"{server.url}/{'x' * 90}", description=SCRIPT)
        publish_events(2)
        dispatch()
    declared = StaticSubscription("acme", f"{NOWHERE}{'a-long-name.' * 6}", "hush")
    static_subscriptions.sync(Configuration(WebhookSettings(subscriptions=(declared,))))
    keys.create(tenant="acme", principal="p" * 128, name=SCRIPT)
    policy.record_denial(
        caller=Caller("t" * 128, "ada"),
        action="chat",
        resource="model:" + "x" * 200,
        reason=SCRIPT,
    )
    limit = "{counts: cost, window: month, limit: 1000, per: [principal, model]}"
    Budget.objects.create(name="b" * 64, definition=limit)
    start = int(start_of("month", datetime.now(UTC)).timestamp())
    add_to_rows({CounterKey("b" * 64, SCRIPT + "x" * 300, start, "acme"): 10**8})
    usage.write([ended(ended_at=datetime.now(UTC), model="m" * 128)])
    RequestRecordFactory.create(model="m" * 128, excerpt=SCRIPT, error="x" * 900)
    Api(tenant="acme", principal="ada").ingest("x" * 9000 + SCRIPT, title="x" * 255)
    tasks.sweep()


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


def request_of(user: User):
    return type("Request", (), {"user": user})()


def details() -> list[str]:
    delivery, target = Delivery.objects.latest("pk"), Endpoint.objects.earliest("pk")
    event, declared = delivery.event, Endpoint.objects.get(static_key__isnull=False)
    rows = [delivery, target, declared, event]
    rows += [each.objects.latest("pk") for each in (GatewayKey, RequestRecord, Budget)]
    changes = [
        reverse(
            f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk]
        )
        for row in rows
    ]
    webhooks = "/admin/webhooks_core/"
    return [
        *changes,
        f"{webhooks}endpoint/failing/",
    ]


def portal_pages() -> list[str]:
    tenant = Endpoint.objects.of("gateway", "acme")
    one = f"/portal/endpoints/{tenant.earliest('pk').public_id}"
    return ["/portal", "/portal/add", "/portal/deliveries", one, f"{one}/secret"]


class OpenRequests:
    """The requests of a page that have no answer yet."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)

    # The driver marks handlers, which a method of a set cannot be.
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


THIRD_PARTIES = ("/admin/auth/", "/admin/django_q/")
CUT = "all => all.filter(it => it.scrollWidth > it.clientWidth).length"


@pytest.fixture(scope="module")
def axe() -> str:
    return script()


def test_no_page_complains_loads_anything_foreign_overflows_or_excludes_anybody(
    live_server, page, complaints, axe
):
    """Each page is loaded dark on a telephone, and then shown light on a desk."""
    fill()
    requests = OpenRequests(page)

    def show(path: str, scheme: Any, width: int) -> None:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        requests.wait()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert (path, wide) == (path, width)
        assert (path, complaints) == (path, [])
        if path.startswith(("/accounts", "/portal", "/admin/webhooks_core")):
            assert (path, violations(page, axe)) == (path, [])

    def visit(path: str, *, narrow: int = 390) -> None:
        page.set_viewport_size({"width": narrow, "height": 800})
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        answer = page.goto(f"{live_server.url}{path}")
        assert (path, answer.status) == (path, 200)
        show(path, "dark", narrow)
        show(path, "light", 1280)
        if not path.startswith(THIRD_PARTIES):
            # No list cuts a column beside the menu and the filters.
            assert (path, page.locator(".results").evaluate_all(CUT)) == (path, 0)

    for path in OPEN:
        visit(path, narrow=320)
    open_admin(page, live_server.url)
    operator = User.objects.get(username="ada")
    pages = ["/admin/", *lists(), *forms(operator), *details()]
    pages += [*OWN, *pages_of(str(operator.pk))]
    assert len(pages) > 50
    for path in pages:
        visit(path)
    made = links.create(
        tenant="acme", principal="ada", capabilities=[*links.CAPABILITIES]
    )
    link = f"/portal/open/{made.token}"
    visit(link)
    page.get_by_role("button", name="Open").click()
    for path in portal_pages():
        visit(path)
