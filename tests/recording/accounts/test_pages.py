"""The pages of an account, and what operators see and do."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

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
from tests.recording.oauth.flows import REDIRECT, App

BACKEND = "django.contrib.auth.backends.ModelBackend"


def test_the_pages_need_a_login():
    for path in ("/accounts/clients",):
        response = Client().get(path)
        assert response.status_code == 302
        assert response["Location"].startswith("/accounts/login")


def test_an_account_sees_its_connected_clients_alone(app, visitor, account):
    page = visitor.get("/accounts/clients").content.decode()
    assert "No application acts for your account." in page
    app.tokens()
    assert "Notebook" in visitor.get("/accounts/clients").content.decode()
    stranger = Client()
    stranger.force_login(UserFactory.create(username="eve"), BACKEND)
    assert "Notebook" not in stranger.get("/accounts/clients").content.decode()


def test_clients_of_the_same_name_differ_by_where_they_return(visitor):
    for redirect in ("http://127.0.0.1:1/cb", "http://[::1]:2/cb?x=1"):
        App.registered(visitor, redirect=redirect).tokens()
    page = visitor.get("/accounts/clients").content.decode()
    assert "Returns to <code>http://127.0.0.1:1</code>" in page
    assert "Returns to <code>http://[::1]:2</code>" in page


def test_the_page_counts_the_connections_of_this_account_alone(app, visitor):
    stranger = Client()
    stranger.force_login(UserFactory.create(username="eve"), BACKEND)
    for _ in range(2):
        app.tokens()
    theirs = App(stranger, app.client_id)
    for _ in range(3):
        theirs.tokens()
    app.refresh(app.tokens()["refresh_token"])
    (application,) = visitor.get("/accounts/clients").context["applications"]
    assert application.connections == 3


def test_the_page_shows_the_first_and_the_latest_time_of_a_connection(app, visitor):
    pair = app.tokens()
    connected = RefreshToken.objects.get().created
    with time_machine.travel(connected + timedelta(days=2)):
        app.refresh(pair["refresh_token"])
        (application,) = visitor.get("/accounts/clients").context["applications"]
        assert application.connected_at == connected
        assert application.refreshed_at - connected >= timedelta(days=2)


def test_disconnecting_ends_every_connection_and_waiting_code(app, visitor):
    first, second, waiting = app.tokens(), app.tokens(), app.code()
    other = App.registered(visitor).tokens()
    response = visitor.post(
        "/accounts/clients", {"client_id": app.client_id}, follow=True
    )
    assert "Notebook was disconnected." in response.content.decode()
    for tokens in (first, second):
        assert access.authenticate(tokens["access_token"]) is None
        assert app.refresh(tokens["refresh_token"]).status_code == 400
    assert app.exchange(waiting).status_code == 400
    assert access.authenticate(other["access_token"])


def test_nobody_disconnects_for_another_account(app):
    tokens = app.tokens()
    stranger = Client()
    stranger.force_login(UserFactory.create(username="eve"), BACKEND)
    stranger.post("/accounts/clients", {"client_id": app.client_id})
    assert access.authenticate(tokens["access_token"])


@pytest.mark.parametrize("client_id", ["", "nobody", "a\x00b"])
def test_disconnecting_something_unknown_changes_nothing(app, visitor, client_id):
    tokens = app.tokens()
    response = visitor.post("/accounts/clients", {"client_id": client_id})
    assert response.status_code == 404
    assert access.authenticate(tokens["access_token"])


def test_the_page_needs_as_many_queries_for_nine_clients_as_for_one(
    app, visitor, django_assert_num_queries
):
    app.tokens()
    with django_assert_num_queries(3):
        visitor.get("/accounts/clients")
    for _ in range(8):
        App.registered(visitor).tokens()
    with django_assert_num_queries(3):
        visitor.get("/accounts/clients")


def test_logging_out_needs_post_and_leaves_connections(app, visitor):
    tokens = app.tokens()
    assert visitor.get("/accounts/logout").status_code == 405
    assert visitor.post("/accounts/logout").status_code == 302
    assert visitor.get("/accounts/clients").status_code == 302
    assert access.authenticate(tokens["access_token"])


def test_an_access_token_costs_one_query(app, django_assert_num_queries):
    token = app.tokens()["access_token"]
    with django_assert_num_queries(1):
        access.authenticate(token)


@pytest.mark.parametrize(
    "token", ["", "rec_at_", "rec_at_" + "0" * 36, "a\x00b", "ü" * 43]
)
def test_a_malformed_token_costs_no_query(token, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert access.authenticate(token) is None


# ── Operators ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def staff(db) -> Client:
    client = Client()
    client.force_login(UserFactory.create(superuser=True, username="root"), BACKEND)
    return client


@pytest.mark.parametrize("table", ["accesstoken", "refreshtoken"])
def test_an_operator_ends_a_connection(app, staff, table):
    tokens, other = app.tokens(), app.tokens()
    row = {"accesstoken": AccessToken, "refreshtoken": RefreshToken}[table]
    first = row.objects.earliest("pk")
    response = staff.post(
        f"/admin/oauth2_provider/{table}/",
        {"action": "end_connections", "_selected_action": [first.pk]},
        follow=True,
    )
    assert "The connections were ended." in response.content.decode()
    assert access.authenticate(tokens["access_token"]) is None
    assert access.authenticate(other["access_token"])
    assert LogEntry.objects.get().change_message == "Connection ended"


def test_a_list_of_applications_shows_name_id_and_authentication(app, staff):
    Application.objects.update(name="<b>Minutes</b>")
    application = Application.objects.get()
    text = staff.get("/admin/recording_oauth/application/").content.decode()
    assert "&lt;b&gt;Minutes&lt;/b&gt;<br>" in text
    assert f"<code>{application.client_id[:19]}…</code>" in text
    assert f"<br>{application.registered_address}<" in text
    assert f">{application.created:%Y-%m-%d %H:%M:%S}<br>" in text
    assert ">none (public)<" in text


def test_the_admin_applies_the_redirect_policy(app, staff):
    application = Application.objects.get()
    address = f"/admin/recording_oauth/application/{application.pk}/change/"
    response = staff.post(
        address, {"name": "x", "redirect_uris": "https://evil.example/"}
    )
    assert response.status_code == 200
    assert "not on the allow-list" in response.content.decode()
    application.refresh_from_db()
    assert application.redirect_uris == REDIRECT
    staff.post(address, {"name": "x", "redirect_uris": "http://localhost/cb"})
    application.refresh_from_db()
    assert application.redirect_uris == "http://localhost/cb"
    assert app.exchange("x").json()["error"] == "invalid_grant"


def test_an_operator_deletes_an_application_with_its_tokens(app, staff):
    tokens = app.tokens()
    application = Application.objects.get()
    address = f"/admin/recording_oauth/application/{application.pk}/delete/"
    assert staff.post(address, {"post": "yes"}).status_code == 302
    assert access.authenticate(tokens["access_token"]) is None
    assert not Application.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (
            ["confidential", "implicit", "--redirect-uris", REDIRECT],
            "authorization-code",
        ),
        (
            ["public", "authorization-code", "--redirect-uris", "https://evil.example"],
            "allow-list",
        ),
        (
            [
                "public",
                "authorization-code",
                "--redirect-uris",
                REDIRECT,
                "--skip-authorization",
            ],
            "Consent",
        ),
        (
            [
                "public",
                "authorization-code",
                "--redirect-uris",
                REDIRECT,
                "--name",
                "a\u202eb",
            ],
            "control characters",
        ),
    ],
)
@pytest.mark.django_db
def test_the_command_applies_the_policy(arguments, refusal):
    out = StringIO()
    call_command("createapplication", *arguments, stdout=out)
    assert refusal in out.getvalue()
    assert not Application.objects.exists()


def test_the_command_makes_clients_that_work(visitor):
    for kind, method in (
        ("public", AuthMethod.NONE),
        ("confidential", AuthMethod.BASIC),
    ):
        out = StringIO()
        arguments = [kind, "authorization-code", "--redirect-uris", REDIRECT]
        call_command("createapplication", *arguments, "--client-id", kind, stdout=out)
        secret = out.getvalue().rpartition("client_secret: ")[2].strip()
        app = App(visitor, kind, secret, method.value)
        assert app.tokens()["access_token"]


# ── What is purged ──────────────────────────────────────────────────────────────────


def test_purging_keeps_what_lives_and_deletes_what_cannot_matter(app, visitor):
    start = timezone.now()
    tokens = app.tokens()
    unused = App.registered(visitor)
    fresh = app.refresh(tokens["refresh_token"]).json()
    call_command("prune_oauth", stdout=StringIO())
    assert (Grant.objects.count(), RefreshToken.objects.count()) == (1, 2)
    assert access.authenticate(fresh["access_token"])
    with time_machine.travel(start + timedelta(days=2)):
        call_command("prune_oauth", stdout=StringIO())
        assert (Grant.objects.count(), RefreshToken.objects.count()) == (0, 2)
        assert AccessToken.objects.count() == 1
        call_command("cleartokens", stdout=StringIO())
        late = app.refresh(fresh["refresh_token"])
        assert late.status_code == 200
    with time_machine.travel(start + timedelta(days=91)):
        out = StringIO()
        call_command("prune_oauth", stdout=out)
        assert "applications: 1" in out.getvalue()
        assert not Application.objects.filter(client_id=unused.client_id).exists()
        assert RefreshToken.objects.count() == 1
        assert app.refresh(late.json()["refresh_token"]).status_code == 200
    with time_machine.travel(start + timedelta(days=200)):
        call_command("prune_oauth", stdout=StringIO())
        assert not Application.objects.exists()
        assert not RefreshToken.objects.exists()


def test_a_revoked_access_token_that_expired_still_ends_its_connection(app):
    tokens, start = app.tokens(), timezone.now()
    with time_machine.travel(start + timedelta(hours=2)):
        app.revoke(tokens["access_token"])
        assert app.refresh(tokens["refresh_token"]).status_code == 400


def test_clients_of_operators_are_never_purged(db):
    arguments = ["public", "authorization-code", "--redirect-uris", REDIRECT]
    call_command("createapplication", *arguments, stdout=StringIO())
    with time_machine.travel(timezone.now() + timedelta(days=1000)):
        call_command("prune_oauth", stdout=StringIO())
    assert Application.objects.count() == 1


@pytest.mark.django_db
def test_the_worker_purges_every_hour():
    schedule = Schedule.objects.get(name="oauth: prune")
    assert schedule.schedule_type == Schedule.HOURLY
    assert set(import_string(schedule.func)().values()) == {0}
