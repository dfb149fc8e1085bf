"""The pages of owners: what each shows, and that its buttons call the use cases."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT, nothing_changes, queries_of
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.pages.conftest import BASE, NOWHERE, TYPE, Person
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint, EndpointSecret

pytestmark = pytest.mark.django_db(transaction=True)
NEW = {"url": NOWHERE, "which": "all"}
DECLARED = "the operator&#x27;s configuration declares this endpoint"


def path_of(row: Endpoint | Delivery) -> str:
    kind = "endpoints" if isinstance(row, Endpoint) else "deliveries"
    return f"/{kind}/{row.public_id}"


def failed(person: Person, endpoint: Endpoint) -> Delivery:
    """Return a delivery that failed for good."""
    delivery = person.delivery(endpoint)
    Delivery.objects.filter(pk=delivery.pk).fail(error="HTTP 500")
    return delivery


# ── Endpoints ───────────────────────────────────────────────────────────────────────


def test_an_endpoint_is_added_with_its_secret_and_tested(ada):
    assert "You have no endpoints yet." in ada.page()
    with receiver(204) as server:
        page = ada.post("/add", **NEW | {"url": server.url})
        dispatch()
    endpoint = Endpoint.objects.get()
    assert (endpoint.owner, endpoint.event_types) == (ada.owner, [TYPE])
    assert EndpointSecret.objects.get().value.decrypt() in page
    test = Delivery.objects.get()
    assert test.public_id in page
    assert "Delivered" in ada.page(path_of(test))
    assert server.requests[0].headers["X-Recording-Event"] == "webhook.ping"
    assert "Healthy" in ada.page()


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({}, "Enter a URL."),
        ({"url": "ftp://example.com/"}, "https"),
        ({"url": "https://10.0.0.1/"}, "The URL must lead to public addresses only."),
        ({"url": f"https://93.184.216.34/{'x' * 2048}"}, "2048"),
        ({"url": "https://93.184.216.34/\x00"}, ""),
        ({"which": "these"}, "Choose at least one, or all events."),
        ({"which": "these", "event_types": ["no.such"]}, "no.such"),
    ],
)
def test_a_fault_is_beside_its_field_and_adds_nothing(ada, form, fault):
    values = {"which": "all", "url": NOWHERE if "which" in form else ""} | form
    with nothing_changes():
        page = ada.post("/add", 400, **values)
    assert 'class="field-error"' in page
    assert fault in page
    assert 'aria-invalid="true"' in page
    assert "autofocus" in page


def test_the_quota_is_said_before_and_after_the_form(ada):
    for _ in range(5):
        ada.endpoint()
    assert "Add an endpoint" not in ada.page()
    assert "All 5 endpoints are used" in ada.page("/add")
    assert "at most 5 subscriptions" in ada.post("/add", 429, **NEW)
    assert Endpoint.objects.count() == 5


def test_the_limits_of_the_api_hold_and_a_new_secret_is_shown_in_any_case(
    ada, monkeypatch
):
    rates = django_settings.RECORDING_RATES | {"create": "2/hour", "test": "1/hour"}
    monkeypatch.setattr(django_settings, "RECORDING_RATES", rates)
    ada.post("/add", **NEW)
    page = ada.post("/add", **NEW)
    assert "No test was sent to it" in page
    assert EndpointSecret.objects.latest("pk").value.decrypt() in page
    assert "Too many new subscriptions" in ada.post("/add", **NEW)
    test = f"{path_of(Endpoint.objects.latest('pk'))}/test"
    assert "Too many test events" in ada.post(test)
    assert Delivery.objects.count() == 1


def test_settings_are_changed_and_the_choice_of_events_means_what_it_says(ada):
    endpoint = ada.endpoint(event_types=[])
    for which, listed, shown in (
        ("these", [], "only tests"),
        ("all", [TYPE], "all events"),
    ):
        page = ada.post(path_of(endpoint), url=NOWHERE, which=which)
        assert "The settings were saved." in page
        endpoint.refresh_from_db()
        assert endpoint.event_types == listed
        assert shown in ada.page()
    page = ada.post(path_of(endpoint), 400, url=NOWHERE, which="these")
    assert "Choose at least one, or all events." in page
    page = ada.page(path_of(endpoint)).replace("\n", " ")
    assert 'value="all" checked' in " ".join(page.split())


def test_another_url_asks_for_the_password_of_an_old_login(ada):
    endpoint = ada.endpoint()
    ada.make_old()
    with nothing_changes():
        page = ada.post(path_of(endpoint), **NEW | {"url": f"{NOWHERE}/other"})
    assert "Nothing was saved yet: confirm that it is you" in page


def test_a_disabled_endpoint_is_enabled_and_what_it_missed_is_resent(ada):
    endpoint = ada.endpoint()
    address = path_of(endpoint)
    assert "the endpoint is not disabled" in ada.post(f"{address}/enable")
    endpoints.update(endpoint, status=Endpoint.Status.DISABLED)
    ada.publish()
    page = ada.page(address)
    assert "1 event was not sent since then." in page
    assert "Send a test" not in page
    for act in ("test", "resend"):
        page = ada.post(f"{address}/{act}")
        assert "Nothing is sent: the endpoint is disabled" in page
    assert "Enabled: what waits is sent now." in ada.post(f"{address}/enable")
    page = ada.page(address)
    assert "1 event was not sent while the endpoint was disabled." in page
    assert "Resend them" in page
    assert "Send a test" in page
    page = ada.post(f"{address}/resend", status="missed")
    assert "1 event will be sent." in page
    assert Delivery.objects.get().trigger == "manual"
    assert "not sent while" not in page


def test_what_failed_within_seven_days_is_resent(ada):
    endpoint = ada.endpoint()
    for days in (0, 2, 8):
        at = timezone.now() - timedelta(days=days)
        delivery = failed(ada, endpoint)
        Delivery.objects.filter(pk=delivery.pk).update(created_at=at)
        type(delivery.event).objects.filter(pk=delivery.event_id).update(created_at=at)
    page = " ".join(ada.page(path_of(endpoint)).split())
    assert "2 failed within 7 days, and have not arrived since." in page
    page = ada.post(f"{path_of(endpoint)}/resend")
    assert "2 events will be sent, one after" in page
    assert "2 deliveries are waiting." in page
    assert "Reload the page to see what has become of them." in page  # without scripts
    assert "failed within 7 days" not in page
    again = ada.post(f"{path_of(endpoint)}/resend")
    assert "Nothing was sent: all of it is on its way, or arrived." in again
    assert Delivery.objects.pending().count() == 2


def test_an_endpoint_is_deleted(ada):
    endpoint = ada.endpoint()
    assert "The endpoint was deleted." in ada.post(f"{path_of(endpoint)}/delete")
    endpoint.refresh_from_db()
    assert endpoint.deleted_at is not None


def test_what_the_configuration_declares_is_not_changed_here(ada):
    endpoint = ada.endpoint()
    Endpoint.objects.update(static_key="declared", slot=None)
    address = path_of(endpoint)
    with nothing_changes():
        for path in (address, f"{address}/delete"):
            assert DECLARED in ada.post(path, **NEW)
        assert DECLARED in ada.post(f"{address}/secret", action="rotate")


# ── The secret ──────────────────────────────────────────────────────────────────────


def secret_of(endpoint: Endpoint) -> str:
    return str(EndpointSecret.objects.get(endpoint=endpoint).value.decrypt())


@pytest.mark.parametrize(
    ("path", "form", "text"),
    [
        ("/add", NEW, "The endpoint was added. A test event is on its way."),
        ("{endpoint}/secret", {"action": "show"}, "The secret is shown here once."),
        (
            "{endpoint}/secret",
            {"action": "rotate"},
            "The new secret signs from now on. Put it into your server at once.",
        ),
    ],
)
def test_a_secret_is_shown_once_and_a_reload_repeats_nothing(ada, path, form, text):
    old = secret_of(ada.endpoint())
    path = path.format(endpoint=path_of(Endpoint.objects.get()))
    assert old not in ada.page(path)
    response = ada.browser.post(f"{BASE}{path}", form)
    secret = EndpointSecret.objects.latest("pk").value.decrypt()
    assert (secret == old) is (form == {"action": "show"})
    assert secret not in f"{response.headers} {response.cookies}"
    with nothing_changes():
        answer = ada.browser.get(response["Location"])
        assert "no-store" in answer["Cache-Control"]
        page = answer.content.decode()
        assert secret in page
        assert text in page
        assert secret not in ada.browser.get(response["Location"]).content.decode()


def test_after_two_clicks_the_newest_secret_is_shown(ada):
    address, made = f"{BASE}{path_of(ada.endpoint())}/secret", []
    for _ in range(2):
        ada.browser.post(address, {"action": "rotate"})
        made.append(EndpointSecret.objects.get().value.decrypt())
    ended, newest = made
    page = ada.browser.get(address).content.decode()
    assert newest in page
    assert ended not in page


def test_a_new_secret_is_confirmed_and_ends_the_old_one_at_once(ada):
    endpoint = ada.endpoint()
    old, address = secret_of(endpoint), f"{path_of(endpoint)}/secret"
    page = ada.page(address)
    assert "<summary>Make a new secret…</summary>" in page
    assert "After 20 failures in a row the endpoint is disabled." in page
    ada.post(address, action="rotate")
    assert secret_of(endpoint) != old


def test_the_page_says_how_to_verify_a_signature(ada):
    page = " ".join(ada.page(f"{path_of(ada.endpoint())}/secret").split())
    assert (
        "The header <code>X-Recording-Signature</code> is sha256= and the hexadecimal HMAC-SHA256 of "
        "the timestamp, a dot and the body." in page
    )


@pytest.mark.parametrize("action", ["show", "rotate"])
def test_an_old_login_is_asked_for_the_password_first(ada, action):
    endpoint = ada.endpoint()
    address, secret = f"{path_of(endpoint)}/secret", secret_of(endpoint)
    ada.make_old()
    with nothing_changes():
        assert secret not in ada.post(address, action=action)
        assert ada.browser.get(f"{BASE}{address}").status_code == 302


# ── Deliveries ──────────────────────────────────────────────────────────────────────


def test_the_list_has_what_needs_its_owner_first(ada):
    endpoint, other = ada.endpoint(), ada.endpoint(f"{NOWHERE}/other")
    waiting = ada.delivery(endpoint)
    Delivery.objects.exclude(pk=waiting.pk).fail(error="HTTP 410")
    bad = failed(ada, other)

    def shown(query: str) -> set[str]:
        page = ada.page(f"/deliveries{query}")
        rows = Delivery.objects.all()
        return {row.public_id for row in rows if f'{path_of(row)}"' in page}

    every = {row.public_id for row in Delivery.objects.all()}
    assert bad.public_id in shown("")
    assert waiting.public_id not in shown("")
    assert shown("?show=waiting") == {
        row.public_id for row in Delivery.objects.pending()
    }
    assert shown("?show=delivered") == set()
    assert shown("?show=all") == every
    assert shown(f"?show=all&endpoint={other.public_id}") < every
    assert len(shown(f"?id={bad.event.public_id}")) == 2
    assert shown("?show=all&before=" + max(every)) == every - {max(every)}
    for old in ("?show=x", "?before=x", "?endpoint=x%00", "?id=%00", "?id=dlv_%00"):
        ada.page(f"/deliveries{old}")
    answer = ada.browser.get(f"{BASE}/deliveries?id={bad.public_id}")
    assert answer["Location"] == f"{BASE}{path_of(bad)}"
    assert "There is no such delivery." in ada.page("/deliveries?id=evt_x")


def test_a_failure_is_told_in_words_with_what_was_sent_and_answered(ada):
    with receiver(500) as server:
        server.answer = b'{"error": "no such table"}'
        server.headers = {"X-Request-Id": "r-17"}
        delivery = ada.attempted(ada.endpoint(server.url))
    page = ada.page(path_of(delivery))
    assert "Not delivered yet: your server answered 500." in page
    assert "then it is tried again." in page
    assert "Your code raised an error." in page
    assert "after 1 of at most 6 attempts" in page
    assert f"POST <bdi>{server.url}</bdi>" in page
    assert server.requests[0].headers["X-Recording-Signature"] in page
    for text in ("X-Request-Id", "r-17", "no such table", "Resend</button>"):
        assert text in page
    assert "X-Recording-Signature: sha256=" in page  # of the curl command


def test_a_success_asks_before_it_is_sent_again(ada):
    with receiver(204) as server:
        delivery = ada.attempted(ada.endpoint(server.url))
    page = ada.page(path_of(delivery))
    assert "Delivered: your server answered 204 in" in page
    assert "This event has arrived already." in page
    assert "What to do" not in page


def test_a_failed_event_is_resent_and_the_old_delivery_says_so(ada):
    with receiver(500, 204) as server:
        delivery = ada.attempted(ada.endpoint(server.url))
        Delivery.objects.filter(pk=delivery.pk).fail(error="HTTP 500")
        assert "What to do" in ada.page(path_of(delivery))
        page = ada.post(f"{path_of(delivery)}/resend")
        assert "this is its new delivery" in page
        assert "Reload the page to see the result." in page  # without scripts
        dispatch()
    page = ada.page(path_of(delivery))
    assert "It was resent, and arrived then." in page
    assert "What to do" not in page
    waiting = ada.delivery(delivery.endpoint)
    Delivery.objects.filter(pk=waiting.pk).update(attempts=1)  # it is being sent
    assert "of at most" not in ada.page(path_of(waiting))
    assert "attempt is due now" in ada.post(f"{path_of(waiting)}/resend")
    endpoints.update(delivery.endpoint, active=False)
    page = ada.post(f"{path_of(delivery)}/resend")
    assert "Nothing is sent: the endpoint is disabled, paused or deleted." in page


def test_where_the_event_did_not_go_is_named(ada):
    off = ada.endpoint(f"{NOWHERE}/off")
    endpoints.update(off, active=False)
    delivery = ada.delivery(ada.endpoint())
    page = " ".join(ada.page(path_of(delivery)).split())
    assert "/off</bdi></a>: it was disabled or paused then" in page


def test_the_body_is_shown_formatted_exact_and_as_a_download(ada):
    delivery = ada.delivery(ada.endpoint())
    raw = bytes(delivery.event.body).decode()
    assert "&quot;audio_id&quot;: &quot;aud_1&quot;" in ada.page(path_of(delivery))
    exact = ada.page(f"{path_of(delivery)}?body=exact")
    assert raw.replace('"', "&quot;") in exact
    download = ada.browser.get(f"{BASE}{path_of(delivery)}/body")
    assert download.content.decode() == raw
    assert download["Content-Type"] == "application/octet-stream"
    assert download["Content-Disposition"].startswith("attachment")


def test_everything_from_strangers_is_escaped(ada):
    with receiver(418) as server:
        server.answer = SCRIPT.encode() + b"\xff\x00"
        server.headers = {"X-Evil": SCRIPT}
        delivery = ada.attempted(ada.endpoint(f"{server.url}?{SCRIPT}"), title=SCRIPT)
    for path in ("", path_of(delivery), path_of(delivery.endpoint)):
        page = ada.page(path)
        assert SCRIPT not in page
        assert "&lt;script&gt;alert(1)" in page


def test_what_is_for_operators_alone_stays_with_them(ada, settings):
    """What an internal network answers, credentials in headers, our machines."""
    settings.WEBHOOK_ALLOWED_TARGETS = ["127.0.0.0/8"]
    with receiver(500) as server:
        server.answer = b"internal text"
        server.headers = {"X-Internal": "secret-host"}
        endpoint = ada.endpoint(server.url.replace("127.0.0.1", "localhost"))
        endpoints.set_custom_headers(endpoint, {"X-Api-Key": "hush-hush"})
        Endpoint.objects.filter(pk=endpoint.pk).update(trusted=True)
        delivery = ada.attempted(endpoint)
    assert server.requests[0].headers["X-Api-Key"] == "hush-hush"
    address = delivery.attempt_set.get().details["address"]
    pages = ada.page(path_of(delivery)) + ada.page(path_of(endpoint)) + ada.page()
    for hidden in ("internal text", "secret-host", "hush-hush", address, "lease"):
        assert hidden not in pages
    assert "only operators see what it answered" in pages
    assert "your server answered 500" in pages


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_queries_does_not_grow_with_what_was_sent(ada, count):
    made = [ada.endpoint() for _ in range(count)]
    rows: list[Any] = [failed(ada, made[0]) for _ in range(count)]
    paths = {"": 5, "/deliveries": 6 + count, path_of(made[0]): 10, path_of(rows[0]): 8}
    for path, most in paths.items():
        assert len(queries_of(ada.browser, f"{BASE}{path}")) <= most, path
