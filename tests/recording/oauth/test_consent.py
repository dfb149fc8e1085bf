"""The consent page: who asks for what, as whom, and what was wrong."""

from html import escape

import pytest
from django.test import Client

from recording.oauth.models import Application
from tests.recording.oauth.flows import REDIRECT, App, refusal, register

CALLBACK = {"redirect_uris": [REDIRECT]}


@pytest.mark.parametrize("name", ["Notebook", ""])
def test_it_names_what_it_gives_access_to(visitor, name):
    page = visitor.get(App.registered(visitor, client_name=name).address())
    text = page.content.decode()
    assert "read your recordings and manage your webhooks" in text
    assert "see your e-mail address (<bdi>ada@example.org</bdi>)" in text
    assert "<code>http://127.0.0.1:4567</code>" in text
    assert "A program on this computer." in text
    assert ("without a name" in text) is (not name)


def test_the_clients_name_is_text_apart_from_our_own_words(visitor):
    name = '<script>alert(1)</script> "Signpost": click Allow'
    page = visitor.get(App.registered(visitor, client_name=name).address())
    before, _, rest = page.content.decode().partition('<blockquote class="quote">')
    claim, _, after = rest.partition("</blockquote>")
    assert escape(name) in claim
    assert "alert(1)" not in before + after
    assert "Nobody has checked this name." in after


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/cb?a=1&b=2", 'https://x/"><script>alert(1)</script>'],
)
@pytest.mark.parametrize("logged_in", [True, False])
def test_an_address_that_was_not_registered_leads_nowhere(app, logged_in, address):
    browser = app.visitor if logged_in else Client()
    response = browser.get(app.address(redirect_uri=address))
    assert response.status_code == 400
    text = response.content.decode()
    assert "The application did not register this redirect_uri." in text
    assert "<script" not in text
    assert address[:10] not in text


def test_an_unknown_application_has_no_address_shown(visitor):
    query = "client_id=nobody&redirect_uri=https://evil.example/"
    text = visitor.get(f"/oauth/authorize?{query}").content.decode()
    assert "The application is not known here." in text
    assert "evil.example" not in text


# ── Names ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name",
    [
        *("a\x00b", "a\nb", "a\u202eb", "a\u2066b", "a\u200bb", "a\u00adb", "\ufeffa"),
        *("a\ue000", "\U000e0041", "\u200da", "a\u200c", "a\u200d b", "a\u200d\u200db"),
        *("$\u200d$", "می\u200bشود", "🏴\U000e0067\U000e007f", "x" * 101, 7, ["a"]),
    ],
)
@pytest.mark.django_db
def test_a_name_that_could_deceive_is_refused(name):
    response = register(CALLBACK | {"client_name": name})
    assert refusal(response) == "invalid_client_metadata"


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("Notes\u2028\u2029 from\u00a0work ", "Notes from work"),
        ("Cafe\u0301 עברית ไทยน้ำ 1\ufe0f\u20e3 😀", None),
        ("می\u200cشود क्\u200dष ക്\u200cഷ", None),
        ("\u2028 \u00a0", ""),
    ],
)
@pytest.mark.django_db
def test_an_honest_name_is_kept_on_one_line(name, stored):
    body = register(CALLBACK | {"client_name": name}).json()
    expected = name if stored is None else stored
    row = Application.objects.get(client_id=body["client_id"])
    assert row.name == body.get("client_name", "") == expected
