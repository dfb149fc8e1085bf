"""Where a browser may be sent with a code: exactly where the client registered."""

import pytest

from recording.oauth.models import Application
from tests.recording.oauth.flows import (
    ISSUER,
    REDIRECT,
    STATE,
    App,
    query_of,
    refusal,
    register,
)

PUBLIC = "https://app.example/callback"


@pytest.fixture
def public(visitor, settings) -> App:
    """A client with an https address that the operator allows."""
    settings.OAUTH_ALLOWED_REDIRECTS = [PUBLIC, "https://other.example"]
    return App.registered(visitor, redirect=PUBLIC)


# ── Redirect addresses (RFC 9700 section 4.1) ───────────────────────────────────────

VARIANTS = [
    *("https://app.example/callback/", "https://app.example/callback/../callback"),
    *("https://app.example/callback?x=1", "https://app.example/callback?"),
    *("https://app.example/callback#f", "https://app.example/Callback"),
    *("https://app.example/%63allback", "https://app.example:443/callback"),
    *("https://app.example:8443/callback", "https://app.example./callback"),
    *("https://APP.example/callback", "https://sub.app.example/callback"),
    "https://app.example.evil.example/callback",
    "https://app.example@evil.example/callback",
    "https://evil.example/https://app.example/callback",
    *("https://app.example\\@evil.example/callback", "http://app.example/callback"),
    *("HTTPS://app.example/callback", "//app.example/callback", "/callback"),
    *("javascript:alert(1)", "data:text/html,x", "https://other.example/callback"),
    "https://app.example/callback https://evil.example",
    *("https://app.example/callback;evil", "https://app.example/callback\u3002"),
]


@pytest.mark.parametrize("address", VARIANTS)
def test_no_variant_of_a_registered_address_is_followed(public, address):
    response = public.visitor.get(public.address(redirect_uri=address))
    assert response.status_code == 400
    assert "Location" not in response
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    "address",
    [
        *("http://127.0.0.1@evil.example/", "http://2130706433/", "http://0x7f.1/"),
        *("http://127.1/", "http://127.0.0.2/", "http://0.0.0.0/", "http://[::]/"),
        *("http://[::ffff:127.0.0.1]/", "http://localhost.evil.example/"),
        *("http://localhost./", "http://LOCALHOST/", "http://127.0.0.1:0/"),
        *("http://127.0.0.1:65536/", "http://127.0.0.1:/", "http://127.0.0.1/#f"),
        *("http://127.0.0.1\\@evil.example/", "http://127.0.0.1%2f@evil.example/"),
        *("http://127.0.0.1/\r\nX: y", "http://127.0.0.1/\x00", "http://127.0.0.1/ a"),
        *("http://127.0.0.1/%", "http://127.0.0.1/%4", "http://127.0.0.1/?a=%zz"),
        *("http://127.0.0.1/?a=%F\uff26", "http://127.0.0.1/?a=%%41"),
        *("https://app.example/%g1", "cursor://callback/?a=%"),
        *("http://127.0.0.1/?code=mine", "http://127.0.0.1/?a=b&iss=mine"),
        *("http://127.0.0.1/?a=b;error=mine", "http://127.0.0.1/?c%6Fde=mine"),
        *("http://127.0.0.1/?a=b%26state=mine", "http://127.0.0.1/?Code=mine"),
        *("http://127.0.0.1/?state", "http://127.0.0.1\u200b/cb"),
        *("http://127.0.0.1/\u202ecb", "http://127.0.0.1:8\u0660/cb"),
        "http://127\u3002" + "0.0.1/",
        *("http://\u24dbocalhost/", "http://[0:0:0:0:0:0:0:1]/", "http://[::1%25lo]/"),
        *("https://*.other.example/", "https://other.example@evil.example/"),
        *("http://app.example/callback", "https://app.example/callback#f"),
        *("javascript:alert(1)", "javascript://app/%0aalert(1)", "data:/text/html,x"),
        *("file:///etc/passwd", "cursor:", "cursor:callback", "cursor://"),
        *("cursor:///callback", "https://other.example/*"),
        *("http://127.0.0.1:*/callback", "http://127.0.0.1/*"),
        *("cursor://user@callback", "cursor://callback#f", "cursor://*/callback"),
        *("cursor://callback?code=mine", "Cursor://callback/"),
        *("urn:ietf:wg:oauth:2.0:oob", ""),
        "x" * 3000,
        "http://127.0.0.1/" + "x" * 2048,
        7,
        None,
        ["http://127.0.0.1/"],
    ],
)
def test_registration_refuses_addresses_outside_the_policy(public, address):
    before = Application.objects.count()
    response = register({"redirect_uris": [REDIRECT, address]})
    assert refusal(response) == "invalid_redirect_uri"
    assert Application.objects.count() == before


@pytest.mark.parametrize(
    "address",
    [
        *("http://127.0.0.1/cb", "http://127.0.0.1:4000/cb"),
        *("http://localhost:4000/cb", "http://[::1]:4000/cb?x=1", "http://[::1]"),
        *(PUBLIC, "https://other.example"),
    ],
)
@pytest.mark.spec("recording", "Authentication 2: loopback exempt, https allow-listed")
def test_loopback_and_listed_addresses_are_accepted(public, address):
    assert App.registered(public.visitor, redirect=address).decide()["code"]


UNLISTED = [
    *("https://127.0.0.1/", "https://evil.example/", "https://other.example/any/path"),
    *("https://other.example/", "https://app.example/callback/"),
    *("cursor://anysphere.cursor-retrieval/oauth/callback", "cursor://callback"),
    "com.example.app:/callback?x=1",
]


def test_registration_leaves_out_what_is_well_formed_and_not_listed(public):
    response = register({"redirect_uris": [*UNLISTED, REDIRECT, PUBLIC]})
    assert response.status_code == 201
    assert response.json()["redirect_uris"] == [REDIRECT, PUBLIC]
    app = App(public.visitor, response.json()["client_id"])
    assert public.visitor.get(app.address()).status_code == 200
    for address in UNLISTED:
        page = public.visitor.get(app.address(redirect_uri=address))
        assert page.status_code == 400


@pytest.mark.parametrize("addresses", [[address] for address in UNLISTED] + [UNLISTED])
def test_registration_needs_one_address_that_is_allowed(public, addresses):
    before = Application.objects.count()
    response = register({"redirect_uris": addresses})
    assert refusal(response) == "invalid_redirect_uri"
    assert "redirect_uris[0]" in response.json()["error_description"]
    assert Application.objects.count() == before


def test_only_the_port_of_a_loopback_address_may_differ(app):
    for address, status in (
        (REDIRECT.replace("4567", "9"), 200),
        ("http://localhost:4567/callback", 400),
        ("http://127.0.0.1:9/callback/", 400),
    ):
        page = app.visitor.get(app.address(redirect_uri=address))
        assert page.status_code == status


def test_an_address_that_leaves_the_allow_list_is_refused_at_once(public, settings):
    settings.OAUTH_ALLOWED_REDIRECTS = []
    assert public.visitor.get(public.address()).status_code == 400


@pytest.mark.parametrize(
    ("query", "separator"),
    [
        ("", "?"),
        ("?", ""),
        ("?a=%FF%FE", "&"),
        ("?a=%2f%2F%3a+%20", "&"),
        ("?a&b=&&c", "&"),
        ("?a=b&", ""),
        ("?a=b;c=d&a=b", "&"),
        ("?a=?/:@!$'(),", "&"),
    ],
)
@pytest.mark.parametrize("decision", ["allow", "deny"])
@pytest.mark.parametrize("start", ["http://127.0.0.1:4567", "http://127.0.0.1/%2F;p"])
def test_the_query_of_a_redirect_address_is_kept_as_it_was_registered(
    visitor, start, query, separator, decision
):
    """RFC 6749 section 3.1.2: the query component is retained when parameters are added."""
    app = App.registered(visitor, redirect=start + query)
    location = visitor.post(app.address(), {decision: "yes"})["Location"]
    kept = start + query + separator
    assert location.startswith(kept)
    added = query_of("?" + location.removeprefix(kept))
    assert (added["state"], added["iss"]) == (STATE, ISSUER)
    if decision == "allow":
        assert app.exchange(added["code"]).status_code == 200
    else:
        assert added["error"] == "access_denied"
