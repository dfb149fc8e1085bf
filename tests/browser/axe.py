"""axe-core in a page, and an account with rows of every kind for it to look at."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.publishing import publish

# Of what passed, one example each: the rest would be megabytes. Style sheets are not loaded again.
RUN = "() => axe.run(document, {resultTypes: ['violations'], preload: false})"
BASE = "/accounts/webhooks"


def script() -> str:
    """Return the script of axe-core, which a package for tests ships."""
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip(
            "needs axe-playwright-python: pip install it, or run `make install`"
        )
    return (Path(package.origin).parent / "axe.min.js").read_text()


def violations(page: Page, script: str) -> list[dict[str, Any]]:
    # Not by a tag: the policy of the pages allows no script of others.
    page.evaluate(script)
    result = page.evaluate(RUN)
    assert len(result["passes"]) > 10  # it has looked
    return [
        {"rule": found["id"], "where": [node["html"][:200] for node in found["nodes"]]}
        for found in result["violations"]
    ]


def pages_of(owner: str) -> Iterator[str]:
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
            publish(
                profile="recording",
                owner=owner,
                event_type="summary.completed",
                data={"audio_id": f"aud_{number}"},
            )
        dispatch()
    yield BASE
    yield f"{BASE}/add"
    yield from (f"{BASE}/deliveries{query}" for query in ("", "?show=all"))
    mine = Endpoint.objects.of("recording", owner)
    for endpoint in mine:
        for page in ("", "/secret"):
            yield f"{BASE}/endpoints/{endpoint.public_id}{page}"
    for delivery in Delivery.objects.filter(endpoint__in=mine):
        yield f"{BASE}/deliveries/{delivery.public_id}"
