"""axe-core finds nothing on any page of owners and accounts, in light and dark, wide and narrow."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page

from tests.browser.test_every_page import OWN
from tests.factories import UserFactory
from tests.gateway.portal.conftest import delivery_of, endpoint_of, new_link
from tests.gateway.portal.test_tenant_pages import fill as fill_tenant
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint, ReplayJob
from webhooks_core.owners import changes, replay_jobs
from webhooks_core.publishing import publish

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),  # some thirty pages in a real browser, four times
]

# Of what passed, one example each: the rest would be megabytes.
RUN = "() => axe.run(document, {resultTypes: ['violations']})"
BASE = "/accounts/webhooks"


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core, which a package for tests ships."""
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip(
            "needs axe-playwright-python: pip install it, or run `make install`"
        )
    return (Path(package.origin).parent / "axe.min.js").read_text()


def fill(owner: str) -> Iterator[str]:
    """Make endpoints that work, fail and are off, and yield the pages of all of it."""
    with receiver(204) as good, receiver(500) as bad:
        bad.answer = b'{"error": "no such table: orders"}'
        for url in (good.url, bad.url, f"{good.url}/off"):
            endpoints.create(
                profile="recording",
                owner=owner,
                url=url,
                event_types=["summary.completed"],
            )
        off = Endpoint.objects.get(url__endswith="/off")
        Endpoint.objects.filter(pk=off.pk).update(
            status=Endpoint.Status.DISABLED, disabled_at=timezone.now()
        )
        for number in range(2):
            event = publish(
                profile="recording",
                owner=owner,
                event_type="summary.completed",
                data={"audio_id": f"aud_{number}"},
            )
        dispatch()
    until = timezone.now()
    missing = replay_jobs.Selection(
        kind=ReplayJob.Kind.MISSING, since=until - timedelta(hours=1), until=until
    )
    Endpoint.objects.filter(pk=off.pk).update(status=Endpoint.Status.ACTIVE)
    off.refresh_from_db()
    job = replay_jobs.start(off, missing, by=changes.owner("ada"))
    yield f"{BASE}/why?event_id={event.public_id}"
    yield f"{BASE}/deliveries?status=all"
    yield f"{BASE}/endpoints/{off.public_id}/replays/{job.public_id}"
    for endpoint in Endpoint.objects.all():
        for page in ("", "/headers", "/secret", "/replay"):
            yield f"{BASE}/endpoints/{endpoint.public_id}{page}"
    for delivery in Delivery.objects.all():
        yield f"{BASE}/deliveries/{delivery.public_id}"


def violations(page: Page, script: str) -> list[dict[str, Any]]:
    # Not by a tag: the policy of the pages allows no script of others.
    page.evaluate(script)
    result = page.evaluate(RUN)
    assert len(result["passes"]) > 10  # it has looked
    return [
        {"rule": found["id"], "where": [node["html"][:200] for node in found["nodes"]]}
        for found in result["violations"]
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(live_server, page, axe, scheme, width):
    account = UserFactory.create(username="ada", password="a-long-password")
    paths = [*OWN, *fill(str(account.pk))]
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{live_server.url}/accounts/login")
    found = {"/accounts/login": violations(page, axe)}
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password").fill("a-long-password")
    page.keyboard.press("Enter")
    page.wait_for_url("**/accounts")
    for path in paths:
        answer = page.goto(f"{live_server.url}{path}")
        assert (path, answer.status) == (path, 200)
        found[path] = violations(page, axe)
    assert len(found) > 30
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_axe_finds_nothing_in_the_portal(live_server, page, axe):
    endpoint = endpoint_of(filter={"type": "x"})
    delivery_of(endpoint_of())
    made = new_link(theme="dark", return_url="https://app.example/")
    link = f"{live_server.url}/portal/open/{made.token}"
    one = f"{live_server.url}/portal/endpoints/{endpoint.public_id}"
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(link)
    found = {"link": violations(page, axe)}
    page.get_by_role("button", name="Open").click()
    page.wait_for_url("**/portal")
    found["start"] = violations(page, axe)
    _, row = fill_tenant("acme")
    tabs = ("usage", "requests", f"requests/{row.public_id}", "keys")
    portal = [f"{live_server.url}/portal/{name}" for name in tabs]
    for path in (one, f"{one}/secret", f"{one}/delete/none", *portal):
        page.goto(path)
        found[path] = violations(page, axe)
    page.goto(one)
    page.get_by_role("button", name="Test the filter").click()
    found["filter"] = violations(page, axe)
    page.context.clear_cookies()
    page.goto(link)
    found["used"] = violations(page, axe)
    assert not {path: rules for path, rules in found.items() if rules}
