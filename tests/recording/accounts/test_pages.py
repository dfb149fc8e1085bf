"""The pages of an account, and what operators see and do."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import Schedule
from oauth2_provider.models import AccessToken, RefreshToken

from recording.oauth import access
from recording.oauth.models import Application, AuthMethod, Grant
from tests.factories import UserFactory
from tests.recording.accounts.browsers import logged_in
from tests.recording.oauth.flows import REDIRECT, App

CLIENTS = "/accounts/clients"
PAGES = "clients confirm password security-log sessions tokens two-step two-step/app"
FORMS = "clients confirm logout password password/reset sessions tokens tokens/revoke"


@pytest.mark.parametrize("page", ["", *PAGES.split()])
def test_a_page_needs_a_login(client, page):
    address = f"/accounts/{page}".removesuffix("/")
    assert client.get(address)["Location"] == f"/accounts/login?next={address}"


@pytest.mark.parametrize("form", [*FORMS.split(), "two-step/app/remove"])
def test_a_form_needs_the_csrf_token(account, form):
    strict = logged_in(account, enforce_csrf_checks=True)
    assert strict.post(f"/accounts/{form}").status_code == 403


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/tokens/revoke"), ("POST", "/security-log")]
)
def test_another_method_is_refused(visitor, method, path):
    assert visitor.generic(method, f"/accounts{path}").status_code == 405


@pytest.fixture
def stranger(db) -> Client:
    return logged_in(UserFactory.create(username="eve"))


def applications(browser: Client) -> list[Any]:
    return list(browser.get(CLIENTS).context["applications"])


def test_an_account_sees_its_connected_clients_alone(app, visitor, stranger):
    assert b"No application acts for your account." in visitor.get(CLIENTS).content
    app.tokens()
    assert b"Notebook" in visitor.get(CLIENTS).content
    assert b"Notebook" not in stranger.get(CLIENTS).content


def test_clients_of_the_same_name_differ_by_where_they_return(visitor):
    for redirect in ("http://127.0.0.1:1/cb", "http://[::1]:2/cb?x=1"):
        App.registered(visitor, redirect=redirect).tokens()
    page = visitor.get(CLIENTS).content.decode()
    assert "Returns to <code>http://127.0.0.1:1</code>" in page
    assert "Returns to <code>http://[::1]:2</code>" in page


def test_the_page_counts_the_connections_of_this_account_alone(app, visitor, stranger):
    app.tokens()
    App(stranger, app.client_id).tokens()
    app.refresh(app.tokens()["refresh_token"])
    (application,) = applications(visitor)
    assert application.connections == 2


def test_the_page_shows_the_first_and_the_latest_time_of_a_connection(app, visitor):
    pair = app.tokens()
    connected = RefreshToken.objects.get().created
    with time_machine.travel(connected + timedelta(days=2)):
        app.refresh(pair["refresh_token"])
        (application,) = applications(visitor)
        assert application.connected_at == connected
        assert application.refreshed_at - connected >= timedelta(days=2)


def test_disconnecting_ends_every_connection_and_waiting_code(app, visitor):
    first, second, waiting = app.tokens(), app.tokens(), app.code()
    other = App.registered(visitor).tokens()
    response = visitor.post(CLIENTS, {"client_id": app.client_id}, follow=True)
    assert "Notebook was disconnected." in response.content.decode()
    for tokens in (first, second):
        assert access.authenticate(tokens["access_token"]) is None
        assert app.refresh(tokens["refresh_token"]).status_code == 400
    assert app.exchange(waiting).status_code == 400
    assert access.authenticate(other["access_token"])


def test_nobody_disconnects_for_another_account(app, stranger):
    tokens = app.tokens()
    stranger.post(CLIENTS, {"client_id": app.client_id})
    assert access.authenticate(tokens["access_token"])


@pytest.mark.parametrize("client_id", ["", "nobody", "a\x00b"])
def test_disconnecting_something_unknown_changes_nothing(app, visitor, client_id):
    tokens = app.tokens()
    response = visitor.post(CLIENTS, {"client_id": client_id})
    assert response.status_code == 404
    assert access.authenticate(tokens["access_token"])


def test_the_page_needs_as_many_queries_for_three_clients_as_for_one(
    app, visitor, django_assert_num_queries
):
    app.tokens()
    with django_assert_num_queries(3):
        visitor.get(CLIENTS)
    for _ in range(2):
        App.registered(visitor).tokens()
    with django_assert_num_queries(3):
        visitor.get(CLIENTS)


def test_logging_out_needs_post_and_leaves_connections(app, visitor):
    tokens = app.tokens()
    assert visitor.get("/accounts/logout").status_code == 405
    assert visitor.post("/accounts/logout").status_code == 302
    assert visitor.get(CLIENTS).status_code == 302
    assert access.authenticate(tokens["access_token"])


@pytest.mark.parametrize(
    "token", ["", "rec_at_", "rec_at_" + "0" * 36, "a\x00b", "ü" * 43]
)
def test_a_malformed_token_costs_no_query(token, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert access.authenticate(token) is None


# ── Operators ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("table", ["accesstoken", "refreshtoken"])
def test_an_operator_ends_a_connection(app, admin_client, table):
    tokens, other = app.tokens(), app.tokens()
    row = {"accesstoken": AccessToken, "refreshtoken": RefreshToken}[table]
    first = row.objects.earliest("pk")
    response = admin_client.post(
        f"/admin/oauth2_provider/{table}/",
        {"action": "end_connections", "_selected_action": [first.pk]},
        follow=True,
    )
    assert "The connections were ended." in response.content.decode()
    assert access.authenticate(tokens["access_token"]) is None
    assert access.authenticate(other["access_token"])
    assert LogEntry.objects.get().change_message == "Connection ended"


def test_a_list_of_applications_shows_name_id_and_authentication(app, admin_client):
    Application.objects.update(name="<b>Minutes</b>")
    application = Application.objects.get()
    text = admin_client.get("/admin/recording_oauth/application/").content.decode()
    assert "&lt;b&gt;Minutes&lt;/b&gt;<br>" in text
    assert f"<code>{application.client_id[:19]}…</code>" in text
    assert f"<br>{application.registered_address}<" in text
    assert f">{application.created:%Y-%m-%d %H:%M:%S}<br>" in text
    assert ">none (public)<" in text


def test_the_admin_applies_the_redirect_policy(app, admin_client):
    application = Application.objects.get()
    address = f"/admin/recording_oauth/application/{application.pk}/change/"
    response = admin_client.post(
        address, {"name": "x", "redirect_uris": "https://evil.example/"}
    )
    assert response.status_code == 200
    assert "not on the allow-list" in response.content.decode()
    application.refresh_from_db()
    assert application.redirect_uris == REDIRECT
    admin_client.post(address, {"name": "x", "redirect_uris": "http://localhost/cb"})
    application.refresh_from_db()
    assert application.redirect_uris == "http://localhost/cb"
    assert app.exchange("x").json()["error"] == "invalid_grant"


def test_an_operator_deletes_an_application_with_its_tokens(app, admin_client):
    tokens = app.tokens()
    application = Application.objects.get()
    address = f"/admin/recording_oauth/application/{application.pk}/delete/"
    assert admin_client.post(address, {"post": "yes"}).status_code == 302
    assert access.authenticate(tokens["access_token"]) is None
    assert not Application.objects.exists()


def create_application(
    kind: str = "public", grant: str = "authorization-code", **options: Any
) -> str:
    """Run the toolkit's command; return what it says."""
    out, options = StringIO(), {"redirect_uris": REDIRECT} | options
    call_command("createapplication", kind, grant, stdout=out, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"grant": "implicit"}, "authorization-code"),
        ({"redirect_uris": "https://evil.example"}, "allow-list"),
        ({"skip_authorization": True}, "Consent"),
        ({"name": "a\u202eb"}, "control characters"),
        # Stored as it is, a secret would be refused at every token request.
        ({"kind": "confidential", "hash_client_secret": False}, "a hash"),
    ],
)
@pytest.mark.django_db
def test_the_command_applies_the_policy(changes, refusal):
    assert refusal in create_application(**changes)
    assert not Application.objects.exists()


@pytest.mark.parametrize(
    ("kind", "method"),
    [("public", AuthMethod.NONE), ("confidential", AuthMethod.BASIC)],
)
def test_the_command_makes_clients_that_work(visitor, kind, method):
    said = create_application(kind, client_id=kind)
    secret = said.rpartition("client_secret: ")[2].strip()
    assert App(visitor, kind, secret, method.value).tokens()["access_token"]


# ── What is purged ──────────────────────────────────────────────────────────────────


def prune_oauth() -> str:
    out = StringIO()
    call_command("prune_oauth", stdout=out)
    return out.getvalue()


def test_purging_keeps_what_lives_and_deletes_what_cannot_matter(app, visitor):
    start = timezone.now()
    tokens = app.tokens()
    unused = App.registered(visitor)
    fresh = app.refresh(tokens["refresh_token"]).json()
    prune_oauth()
    assert (Grant.objects.count(), RefreshToken.objects.count()) == (1, 2)
    assert access.authenticate(fresh["access_token"])
    with time_machine.travel(start + timedelta(days=2)):
        prune_oauth()
        assert (Grant.objects.count(), RefreshToken.objects.count()) == (0, 2)
        assert AccessToken.objects.count() == 1
        call_command("cleartokens", stdout=StringIO())
        late = app.refresh(fresh["refresh_token"])
        assert late.status_code == 200
    with time_machine.travel(start + timedelta(days=91)):
        assert "applications: 1" in prune_oauth()
        assert not Application.objects.filter(client_id=unused.client_id).exists()
        assert RefreshToken.objects.count() == 1
        assert app.refresh(late.json()["refresh_token"]).status_code == 200
    with time_machine.travel(start + timedelta(days=200)):
        prune_oauth()
        assert not Application.objects.exists()
        assert not RefreshToken.objects.exists()


def test_a_revoked_access_token_that_expired_still_ends_its_connection(app):
    tokens, start = app.tokens(), timezone.now()
    with time_machine.travel(start + timedelta(hours=2)):
        app.revoke(tokens["access_token"])
        assert app.refresh(tokens["refresh_token"]).status_code == 400


def test_clients_of_operators_are_never_purged(db):
    create_application()
    with time_machine.travel(timezone.now() + timedelta(days=1000)):
        prune_oauth()
    assert Application.objects.count() == 1


@pytest.mark.django_db
def test_the_worker_purges_every_hour():
    schedule = Schedule.objects.get(name="oauth: prune")
    assert schedule.schedule_type == Schedule.HOURLY
    assert set(import_string(schedule.func)().values()) == {0}
