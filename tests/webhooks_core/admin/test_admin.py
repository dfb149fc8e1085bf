"""The admin of webhooks: who sees it, what it shows, and that its buttons call the use cases."""

from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import (
    MODELS,
    SCRIPT,
    looker,
    nothing_changes,
    page,
    queries_of,
)
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints
from webhooks_core.admin import base
from webhooks_core.models import Attempt, Delivery, Endpoint, EndpointSecret
from webhooks_core.owners import resending

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]
ADMIN = "/admin/webhooks_core"
ENDPOINTS, DELIVERIES, EVENTS = (
    f"{ADMIN}/{name}/" for name in ("endpoint", "delivery", "event")
)
ACTIONS = (
    *("resend_failed", "enable", "disable"),
    *("rotate_secret", "toggle_trusted"),
)


@pytest.fixture
def target(plain) -> Endpoint:
    """An endpoint with one delivery that failed for good."""
    created = EndpointFactory.create()
    publish_event()
    Delivery.objects.all().fail(error="HTTP 500")
    return created


def change(row: Any) -> str:
    return f"{ADMIN}/{row._meta.model_name}/{row.pk}/change/"


def select(client, action: str, *rows: Any, **form: str) -> str:
    """Do something with rows of a list; return the page that follows."""
    address = f"{ADMIN}/{rows[0]._meta.model_name}/"
    selected = {"action": action, "_selected_action": [row.pk for row in rows]}
    answer = client.post(address, selected | form, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def operate(client, row: Any, action: str, **form: str) -> str:
    """Press a button on the page of a row; return the page that follows."""
    return select(client, action, row, button="1", **form)


# ── Who ─────────────────────────────────────────────────────────────────────────────


def every_page() -> list[str]:
    lists = [f"{ADMIN}/{each._meta.model_name}/" for each in MODELS]
    rows = [change(each.objects.get()) for each in MODELS]
    return [*lists, *rows, f"{ENDPOINTS}failing/"]


@pytest.fixture
def unchanged(target) -> Iterator[None]:
    with nothing_changes():
        yield


@pytest.mark.usefixtures("unchanged")
def test_who_may_view_sees_every_page_and_changes_nothing(client):
    looker(client, [f"view_{each._meta.model_name}" for each in (*MODELS, Attempt)])
    texts = "".join(page(client, address) for address in every_page())
    assert 'name="action"' not in texts
    for action in ACTIONS:
        select(client, action, Endpoint.objects.get(), confirmed="1")
    select(client, "resend", only_delivery())


@pytest.mark.usefixtures("unchanged")
def test_others_see_nothing_and_history_is_not_edited(client, admin_client):
    looker(client)
    for address in every_page():
        page(client, address, 403)
    for row in (each.objects.get() for each in MODELS):
        for tail in ("change/", "delete/"):
            address = change(row).replace("change/", tail)
            assert admin_client.post(address, {"_save": "Save"}).status_code == 403


# ── What is shown ───────────────────────────────────────────────────────────────────


def test_what_fails_since_when_and_why_is_one_click_away(admin_client, use_profile):
    use_profile(disable_after=None)
    assert "No endpoint is failing." in page(admin_client, f"{ENDPOINTS}failing/")
    with receiver(500) as server:
        server.answer = b"no such table"
        EndpointFactory.create(url=server.url)
        publish_event()
        dispatch()
    assert f"{ENDPOINTS}failing/" in page(admin_client, "/admin/")
    for address in (f"{ENDPOINTS}failing/", ENDPOINTS):
        text = page(admin_client, address)
        assert "1 failed attempt (HTTP 500)." in text
        assert "no such table" in text
        assert change(Endpoint.objects.get()) in text
    # What was sent and answered is two clicks further.
    assert change(only_delivery()) in page(admin_client, change(Endpoint.objects.get()))
    assert "0 successful and 1 failed attempts in 24 hours" in page(
        admin_client, f"{ENDPOINTS}failing/"
    )
    text = page(admin_client, change(only_delivery()))
    assert "no such table" in text
    assert "POST http://127.0.0.1:" in text


def test_what_strangers_wrote_is_escaped_and_secrets_are_not_shown(admin_client):
    target = EndpointFactory.create(url=f"http://127.0.0.1:9/{SCRIPT}")
    endpoints.set_custom_headers(target, {"X-Api-Key": "hush-hush"})
    publish_event(event_type="thing.made")
    Delivery.objects.all().fail(error=SCRIPT)
    [secret] = target.secrets(now=timezone.now())
    for address in every_page():
        text = page(admin_client, address)
        assert SCRIPT not in text
        assert secret not in unescape(text)
        assert "hush-hush" not in text
    assert "X-Api-Key" in page(admin_client, change(target))


@pytest.mark.parametrize(
    ("address", "query", "found"),
    [
        (DELIVERIES, "q={delivery}", True),
        (DELIVERIES, "q={event}", True),
        (DELIVERIES, "q={endpoint}", True),
        (DELIVERIES, "q=127.0.0.1:9", True),
        (DELIVERIES, "q=elsewhere", False),
        (DELIVERIES, "status__exact=2", True),
        (DELIVERIES, "status__exact=1", False),
        (ENDPOINTS, "q=127.0.0.1", True),
        (ENDPOINTS, "q={endpoint}", True),
        (ENDPOINTS, "q=alice", True),
        (ENDPOINTS, "q=bob", False),
        (ENDPOINTS, "state=healthy", True),
        (ENDPOINTS, "state=disabled", False),
        (EVENTS, "q={event}", True),
        (EVENTS, "q=x", False),
    ],
)
def test_a_list_is_searched(admin_client, target, address, query, found):
    delivery = only_delivery()
    query = query.format(
        delivery=delivery.public_id,
        event=delivery.event.public_id,
        endpoint=target.public_id,
    )
    text = page(admin_client, f"{address}?{query}")
    assert ('id="result_list"' in text) is found


def test_lists_are_counted_to_a_bound(admin_client, monkeypatch):
    monkeypatch.setattr(base, "LISTED_AT_MOST", 2)
    EndpointFactory.create()
    publish_events(4)
    assert "2 deliveries" in page(admin_client, DELIVERIES)


def test_a_part_of_a_text_is_searched_among_the_newest_rows(admin_client, monkeypatch):
    monkeypatch.setattr(base, "SEARCHED_AT_MOST", 1)
    for name in ("old-hook", "new-hook"):
        EndpointFactory.create(url=f"http://127.0.0.1:9/{name}")
    text = page(admin_client, f"{ENDPOINTS}?q=-hook")
    assert ("new-hook" in text, "old-hook" in text) == (True, False)


@pytest.mark.parametrize("count", [1, 4])
def test_the_number_of_queries_is_the_same_for_any_number_of_rows(admin_client, count):
    for _ in range(count):
        EndpointFactory.create(failing_since=timezone.now())
    publish_events(count)
    for address, most in ((ENDPOINTS, 7), (DELIVERIES, 6), (f"{ENDPOINTS}failing/", 8)):
        assert len(queries_of(admin_client, address)) <= most, address


@pytest.mark.parametrize(
    ("listed", "shown"),
    [
        (["thing.made", "thing.lost"], "all events"),
        (["thing.lost"], "thing.lost"),
        ([], "none"),
    ],
)
def test_states_and_event_types_are_in_the_words_of_the_other_pages(
    admin_client, target, listed, shown
):
    Endpoint.objects.update(event_types=listed)
    text = page(admin_client, change(target))
    assert "URL:" in text
    assert f'<div class="readonly">{shown}</div>' in text
    for word in ("Waiting", "Delivered", "Failed"):
        assert f">{word}</a>" in page(admin_client, DELIVERIES)


# ── What is done ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "name", "words"),
    [
        ({}, "enable", "the endpoint is not disabled."),
        ({"status": 2}, "disable", "the endpoint is disabled already."),
        ({"status": 2}, "resend_failed", "Nothing is sent: the endpoint is disabled"),
        ({"static_key": "k"}, "rotate_secret", "that no configuration declares"),
        ({"static_key": "k"}, "toggle_trusted", "configuration declares this endpoint"),
    ],
)
def test_what_cannot_be_done_says_why_and_changes_nothing(
    admin_client, target, state, name, words
):
    Endpoint.objects.update(**state)
    with nothing_changes():
        assert words in operate(admin_client, target, name)


@pytest.mark.spec("recording", "an operator may enable a disabled endpoint")
def test_an_endpoint_is_disabled_and_enabled_and_what_waits_is_sent(admin_client):
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        publish_event()
        assert 'value="enable"' not in page(admin_client, change(target))
        assert "Disabled: nothing is sent." in operate(admin_client, target, "disable")
        Endpoint.objects.update(consecutive_failures=3)
        assert dispatch() == 0
        text = operate(admin_client, target, "enable")
        assert "Enabled: what waits is sent now." in text
        target.refresh_from_db()
        assert (target.status, target.consecutive_failures) == (1, 0)
        assert dispatch() == 1
    messages = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert [text.partition(":")[0] for text in messages] == ["Disabled", "Enabled"]


def test_a_delivery_and_what_failed_are_resent(admin_client, target):
    assert "Resent. (1 of 1)" in operate(admin_client, only_delivery(), "resend")
    text = operate(admin_client, Delivery.objects.latest("pk"), "resend")
    assert "The next attempt is due now." in text
    Delivery.objects.all().fail(error="over")
    text = operate(admin_client, target, "resend_failed")
    assert "Resent 1 that failed within a day." in text
    assert Delivery.objects.count() == 3


def test_selected_rows_are_acted_on_and_refusals_are_shown(admin_client, target):
    other = EndpointFactory.create(url="http://127.0.0.1:9/other")
    text = select(admin_client, "disable", target, other)
    assert "Disabled: nothing is sent. (2 of 2)" in text
    text = select(admin_client, "disable", target)
    assert f"the endpoint is disabled already. ({target})" in text
    text = select(admin_client, "resend", only_delivery())
    assert "Nothing is sent: the endpoint is disabled" in text
    select(admin_client, "enable", target)
    select(admin_client, "resend_failed", target)
    assert Delivery.objects.pending().count() == 1


def test_too_many_at_once_are_not_resent(admin_client, target, monkeypatch):
    monkeypatch.setattr(base, "SELECTED_AT_MOST", 0)
    text = select(admin_client, "resend", only_delivery())
    assert "choose at most 0 at once" in text


def test_a_rotation_is_confirmed_and_shows_the_new_secret_once(admin_client, target):
    (old,) = target.secrets(now=timezone.now())
    asked = operate(admin_client, target, "rotate_secret")
    assert "two signatures" in asked
    for bad in ("", "-1", "169", "1.5", "x"):
        with nothing_changes():
            asked = operate(
                admin_client, target, "rotate_secret", confirmed="1", overlap_h=bad
            )
        assert "errorlist" in asked
    form = {"action": "rotate_secret", "confirmed": "1", "overlap_h": "2"}
    form |= {"_selected_action": str(target.pk)}
    rotated = admin_client.post(ENDPOINTS, form)
    assert rotated["Location"] == change(target)  # a reload sends no form
    shown = unescape(page(admin_client, change(target)))
    new, kept = target.secrets(now=timezone.now())
    assert kept == old
    assert new in shown
    assert old not in shown
    assert new not in unescape(page(admin_client, change(target)))
    assert LogEntry.objects.get().change_message == "Rotated the secret; overlap 2 h."


def test_a_new_secret_is_shown_on_no_other_page(admin_client, target):
    other = EndpointFactory.create()
    form = {"action": "rotate_secret", "confirmed": "1", "overlap_h": "0"}
    admin_client.post(ENDPOINTS, form | {"_selected_action": str(target.pk)})
    [new] = target.secrets(now=timezone.now())
    for row in (other, target):
        assert new not in unescape(page(admin_client, change(row)))


def test_where_a_request_has_one_signature_the_old_secret_ends_at_once(
    admin_client, target, use_profile
):
    use_profile(signature_scheme="sha256")
    asked = operate(admin_client, target, "rotate_secret")
    assert 'name="overlap_h"' not in asked
    assert "The old secret ends at once." in asked
    operate(admin_client, target, "rotate_secret", confirmed="1")
    assert EndpointSecret.objects.count() == 1


def test_a_row_that_was_removed_meanwhile_is_named(admin_client, target, monkeypatch):
    def gone(*_: Any, **__: Any) -> None:
        raise Delivery.DoesNotExist("it is gone")

    monkeypatch.setattr(resending, "resend", gone)
    assert "is gone" in operate(admin_client, only_delivery(), "resend")
