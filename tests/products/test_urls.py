"""Which URLs a subscription may have."""

import socket
from dataclasses import replace
from typing import Any

import pytest

from gateway.configuration.rules import url_policy
from recording import webhooks
from tests.products.product import URL
from webhooks_core import profiles

pytestmark = pytest.mark.django_db

# One of each kind: tests/webhooks_core/network/test_url_policy.py has them all.
REFUSED = [
    ("the metadata service", "https://169.254.169.254/"),
    ("another loopback address", "http://127.0.0.2/"),
    ("a line break", "https://93.184.216.34/\r\nX-Y: z"),
    ("too long", URL + "x" * 2048),
    ("our own listener by name", "http://localhost:8000/v1/webhooks"),
]


@pytest.mark.parametrize("url", ["http://localhost:9/x", "http://[::1]:9", URL])
def test_urls_that_are_accepted(mine, url):
    assert mine.create(url=url)["url"] == url


@pytest.mark.spec("recording", "url: HTTPS, publicly resolvable")
@pytest.mark.parametrize(("_case", "url"), REFUSED)
def test_urls_that_are_refused(product, mine, _case, url):
    created = mine.new_id()
    for method, address in (("POST", ""), ("PATCH", f"/{created}")):
        assert "url" in product.error(mine.call(method, address, {"url": url}), 400)
    assert mine.endpoints.get().url == URL


@pytest.mark.parametrize(
    ("_case", "resolved", "status"),
    [
        ("no such name", socket.gaierror(socket.EAI_NONAME, "unknown"), 400),
        ("a private address", [(2, 1, 6, "", ("192.168.0.9", 0))], 400),
        ("a resolver that fails", socket.gaierror(socket.EAI_AGAIN, "later"), 201),
        ("a public address", [(2, 1, 6, "", ("93.184.216.34", 0))], 201),
    ],
)
@pytest.mark.spec("recording", "a definite no-such-name is refused at create")
def test_names_are_resolved_before_they_are_accepted(
    mine, monkeypatch, _case, resolved, status
):
    def resolve(_host, _port, **_options):
        if isinstance(resolved, Exception):
            raise resolved
        return resolved

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    response = mine.call("POST", "", {"url": "https://hooks.example.com/"})
    assert response.status_code == status
    assert mine.endpoints.count() == (status == 201)


def test_the_same_url_is_not_checked_again(mine, monkeypatch):
    created = mine.new_id(url="https://93.184.216.34/hook")
    monkeypatch.setattr("webhooks_core.network.url_policy._resolve", None)
    body = {"url": "https://93.184.216.34/hook"}
    assert mine.call("PATCH", f"/{created}", body).status_code == 200


def test_a_trusted_subscription_may_move_within_the_allowed_networks(
    product, mine, settings
):
    settings.WEBHOOK_ALLOWED_TARGETS = ["10.1.0.0/16"]
    address, body = f"/{mine.new_id()}", {"url": "https://10.1.2.3/"}
    product.error(mine.call("PATCH", address, body), 400)
    mine.endpoints.update(trusted=True)
    assert mine.call("PATCH", address, body).status_code == 200
    assert mine.endpoints.get().url == "https://10.1.2.3/"


def test_in_production_this_machine_is_refused(product, mine, monkeypatch):
    where: dict[str, Any] = {"base_url": "https://signpost.example", "local": False}
    policy = {
        "recording": lambda: webhooks.profile(**where).url_policy,
        "gateway": lambda: url_policy(**where),
    }[product.name]()
    profile = replace(profiles.get(product.name), url_policy=policy)
    monkeypatch.setitem(profiles.PROFILES, product.name, profile)
    for url in (
        "http://localhost:9/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://signpost.example/",
    ):
        product.error(mine.call("POST", "", {"url": url}), 400)
    assert not mine.endpoints.exists()
