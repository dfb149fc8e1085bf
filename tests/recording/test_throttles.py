"""Whom limits count by, how a rate is written in words, and the limits of OAuth."""

import secrets
from datetime import timedelta

import pytest
from django.test import RequestFactory
from django.utils import timezone

from recording.oauth.models import Application
from recording.throttles import AccountThrottle, client_address
from tests.clock import travel
from tests.recording.oauth.flows import FORM, REDIRECT, App, register


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("60/hour", "60 per hour"),
        ("2/s", "2 per second"),
        ("5/min", "5 per minute"),
        ("9/day", "9 per day"),
    ],
)
def test_a_rate_is_written_in_words(settings, rate, words):
    settings.RECORDING_RATES = {"create": rate}
    assert AccountThrottle("create").limit.endswith(f"an account may create {words}")


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "198.51.100.7", "192.0.2.1"),
        (1, "198.51.100.7", "198.51.100.7"),
        (1, "1.1.1.1, 198.51.100.7", "198.51.100.7"),
        (2, "1.1.1.1, 198.51.100.7, 10.0.0.1", "198.51.100.7"),
        (2, "198.51.100.7", "192.0.2.1"),
        (1, "198.51.100.7:5678", "198.51.100.7"),
        (1, "[2001:db8::1]:5678", "2001:db8::"),
        (1, "[2001:db8::1]", "2001:db8::"),
        (1, "unknown", "unknown"),
        (1, "", "192.0.2.1"),
    ],
)
def test_only_trusted_proxies_report_an_address(settings, proxies, forwarded, address):
    settings.TRUSTED_PROXY_COUNT = proxies
    request = RequestFactory().get(
        "/", REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR=forwarded
    )
    assert client_address(request) == address


@pytest.mark.parametrize(
    ("_case", "peer", "address"),
    [
        ("all of a /64 is one", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("its last address too", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"),
        ("the next /64 is another", "2001:db8:1:3::1", "2001:db8:1:3::"),
        ("an IPv4-mapped address is IPv4", "::ffff:192.0.2.7", "192.0.2.7"),
        ("the same in hexadecimal", "::ffff:c000:207", "192.0.2.7"),
        ("a zone tells nothing", "fe80::1%eth0", "fe80::"),
        ("IPv4 stays whole", "192.0.2.7", "192.0.2.7"),
        ("a socket without an address", "", ""),
    ],
)
@pytest.mark.parametrize("proxied", [False, True])
def test_ipv6_is_counted_by_64_bits(settings, proxied, _case, peer, address):
    settings.TRUSTED_PROXY_COUNT = int(proxied)
    name = "HTTP_X_FORWARDED_FOR" if proxied else "REMOTE_ADDR"
    where = {"REMOTE_ADDR": "", name: peer}
    assert client_address(RequestFactory().get("/", **where)) == address


# ── OAuth ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["register", "token", "authorize"])
def test_a_throttle_says_when_to_try_again(app, settings, name):
    settings.OAUTH_RATES = dict.fromkeys(settings.OAUTH_RATES, "") | {name: "2/minute"}
    app.visitor.defaults["REMOTE_ADDR"] = f"192.0.2.{secrets.randbelow(250)}"
    call = {
        "register": lambda: app.visitor.post(
            "/oauth/register", b"{}", "application/json"
        ),
        "token": lambda: app.visitor.post("/oauth/token", b"", FORM),
        "authorize": lambda: app.visitor.get(app.address()),
    }[name]
    responses = [call() for _ in range(3)]
    assert [response.status_code == 429 for response in responses] == [0, 0, 1]
    assert 1 <= int(responses[-1]["Retry-After"]) <= 60


def test_an_address_registers_no_more_clients_than_the_cap(visitor, settings):
    settings.OAUTH_CLIENTS_PER_ADDRESS = 3
    metadata = {"redirect_uris": [REDIRECT]}
    apps = [App.registered(visitor) for _ in range(3)]
    apps[0].tokens()
    apps.append(App.registered(visitor))
    response = register(metadata)
    assert response.status_code == 429
    assert response["Retry-After"] == "3600"
    assert register(metadata, REMOTE_ADDR="192.0.2.9").status_code == 201
    with travel(timezone.now() + timedelta(minutes=61)):
        assert register(metadata).status_code == 201
    names = set(Application.objects.values_list("client_id", flat=True))
    assert names & {app.client_id for app in apps} == {apps[0].client_id}
