from __future__ import annotations

import ast
import io
import json
from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import Schedule

from recording.accounts import personal_tokens
from recording.accounts.personal_tokens import authenticate
from recording.models import PersonalToken
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def run(command, *args: str, **options):
    out = io.StringIO()
    call_command(command, *args, stdout=out, **options)
    return out.getvalue()


def after(**span):
    return time_machine.travel(timezone.now() + timedelta(**span), tick=False)


@pytest.fixture
def text(user):
    return personal_tokens.create(user=user, days=365, name="laptop").text


# ── What a token is ─────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "rec_pat_ + 30 base62 + checksum; only a hash is stored")
def test_a_token_is_stored_as_a_hash_alone(text):
    assert text.startswith("rec_pat_")
    assert len(text) == len("rec_pat_") + 36
    row = PersonalToken.objects.values().get()
    assert not any(text in str(value) for value in row.values())
    assert row["display_prefix"] == text[:12]


@pytest.mark.spec(
    "recording", "a command creates personal tokens with an expiry in days"
)
def test_a_token_lives_for_the_days_given_and_no_longer(user):
    text = personal_tokens.create(user=user, days=1).text
    with after(hours=23):
        assert authenticate(text) == user
    with after(days=1):
        assert authenticate(text) is None


@pytest.mark.spec("recording", "invalidated after about 90 days of inactivity")
def test_ninety_days_without_use_end_a_token(text, user):
    with after(days=89):
        assert authenticate(text) == user
    with after(days=89 + 89):
        assert authenticate(text) == user
    with after(days=89 + 89 + 90):
        assert authenticate(text) is None


def test_a_token_that_was_never_used_ends_after_ninety_days(text):
    with after(days=90):
        assert authenticate(text) is None


def test_a_revoked_token_ends_at_once(text):
    PersonalToken.objects.revoke(timezone.now())
    assert authenticate(text) is None


def test_an_inactive_user_s_token_does_not_work(text, user):
    User.objects.update(is_active=False)
    assert authenticate(text) is None
    User.objects.update(is_active=True)
    assert authenticate(text) == user


@pytest.mark.parametrize("token", ["", "x", "rec_pat_", "\0", "\ud800", "ü" * 44])
def test_malformed_tokens_are_refused_without_a_query(token, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert authenticate(token) is None


@pytest.mark.spec("recording", "one query; last use written at most hourly")
def test_a_use_is_noted_at_most_once_an_hour(text):
    counts = []
    now = timezone.now()
    for minutes in (0, 1, 59, 60, 61):
        with (
            time_machine.travel(now + timedelta(minutes=minutes), tick=False),
            CaptureQueriesContext(connection) as queries,
        ):
            authenticate(text)
        counts.append(len(queries))
    assert counts == [2, 1, 1, 2, 1]
    assert PersonalToken.objects.get().last_used_at == now + timedelta(hours=1)


def test_of_two_requests_at_once_one_notes_the_use(text):
    first, second = PersonalToken.objects.get(), PersonalToken.objects.get()
    now = timezone.now()
    assert [first.use(now), second.use(now)] == [True, False]


# ── The commands ────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "create_personal_token: token alone on standard output")
def test_create_prints_the_token_alone(user):
    out = run("create_personal_token", "ada", "--days", "7", "--name", "build server")
    assert authenticate(out.removesuffix("\n")) == user
    token = PersonalToken.objects.get()
    assert token.name == "build server"
    assert token.expires_at - token.created_at == timedelta(days=7)


@pytest.mark.parametrize(
    ("_case", "args", "words"),
    [
        ("no such user", ["nobody", "--days", "1"], "no user named 'nobody'"),
        ("not text", ["\udcff", "--days", "1"], "no user named"),
        ("0 days", ["ada", "--days", "0"], "between 1 and 365"),
        ("366 days", ["ada", "--days", "366"], "between 1 and 365"),
        ("negative days", ["ada", "--days=-1"], "between 1 and 365"),
        ("no number", ["ada", "--days", "many"], "invalid int"),
        ("no days", ["ada"], "--days"),
        ("a long name", ["ada", "--days", "1", "--name", "x" * 101], "longer than 100"),
        ("a control character", ["ada", "--days", "1", "--name", "a\tb"], "shown"),
        ("a lone surrogate", ["ada", "--days", "1", "--name", "\udcff"], "shown"),
    ],
)
@pytest.mark.spec("recording", "the maximum is 365 days")
def test_create_refuses(user, _case, args, words):
    with pytest.raises(CommandError, match=words):
        run("create_personal_token", *args)
    assert not PersonalToken.objects.exists()


def states_in(listed: str) -> list[str]:
    return [line.split("\t")[3] for line in listed.splitlines()]


@pytest.mark.spec("recording", "list_personal_tokens [USER]")
def test_list_shows_states_and_never_a_token(text, user):
    other = personal_tokens.create(user=UserFactory.create(username="bob"), days=1).text
    PersonalToken.objects.filter(user__username="bob").revoke(timezone.now())
    short = personal_tokens.create(user=user, days=1).text
    with after(days=2):
        everything = run("list_personal_tokens")
        hers = run("list_personal_tokens", "ada")
    with after(days=91):
        later = run("list_personal_tokens", "ada")
    assert text not in everything
    assert states_in(everything) == ["state", "live", "revoked", "expired"]
    assert [each[:12] in hers for each in (text, short, other)] == [True, True, False]
    assert states_in(later)[1] == "unused"
    with pytest.raises(CommandError, match="no user named"):
        run("list_personal_tokens", "nobody")


@pytest.mark.spec("recording", "revoke_personal_token ID… | --user USER --all")
def test_revoke_by_ids_and_by_user(user):
    created = [personal_tokens.create(user=user, days=1) for _ in range(4)]
    ids = [str(row.token.pk) for row in created[:2]]
    assert run("revoke_personal_token", *ids) == "revoked 2\n"
    assert [row for row in created if authenticate(row.text)] == created[2:]
    assert run("revoke_personal_token", "--user", "ada", "--all") == "revoked 2\n"
    assert not any(authenticate(row.text) for row in created)


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--all"],
        ["--user", "ada"],
        ["1", "--all"],
        ["1", "--user", "ada", "--all"],
        ["1", "--user", "ada"],
        ["x"],
        ["0"],
        ["-5"],
        ["99999999999999999999"],
        ["--user", "nobody", "--all"],
    ],
)
def test_revoke_refuses_what_is_not_clear_and_revokes_nothing(text, args):
    token_id = str(PersonalToken.objects.get().pk)
    args = [token_id if arg == "1" else arg for arg in args]
    with pytest.raises(CommandError):
        run("revoke_personal_token", *args)
    assert authenticate(text)


def test_revoke_with_one_absent_id_revokes_none(text):
    token_id = PersonalToken.objects.get().pk
    with pytest.raises(CommandError, match=f"id {token_id + 1}; nothing"):
        run("revoke_personal_token", str(token_id), str(token_id + 1))
    assert authenticate(text)


@pytest.mark.spec("recording", "prune_personal_tokens")
def test_prune_deletes_ended_tokens_only(text, user):
    expired = personal_tokens.create(user=user, days=1).token
    revoked = personal_tokens.create(user=user, days=9).token
    PersonalToken.objects.filter(pk=revoked.pk).revoke(timezone.now())
    with after(days=2):
        assert run("prune_personal_tokens") == "deleted 2\n"
    assert not PersonalToken.objects.filter(pk__in=[expired.pk, revoked.pk]).exists()
    assert authenticate(text)
    with after(days=91):
        assert run("prune_personal_tokens") == "deleted 1\n"


def test_prune_can_leave_what_ended_a_short_while_ago(text, user):
    expired = personal_tokens.create(user=user, days=1).token
    revoked = personal_tokens.create(user=user, days=365).token
    PersonalToken.objects.filter(pk=revoked.pk).revoke(timezone.now())
    with after(days=30, minutes=-1):
        assert run("prune_personal_tokens", "--days", "30") == "deleted 0\n"
    with after(days=30, minutes=1):
        assert run("prune_personal_tokens", "--days", "30") == "deleted 1\n"
    assert PersonalToken.objects.filter(pk=expired.pk).exists()
    with after(days=119):  # the one that was never used ended on the 90th day
        assert run("prune_personal_tokens", "--days", "30") == "deleted 1\n"
    with after(days=121):
        assert run("prune_personal_tokens", "--days", "30") == "deleted 1\n"


@pytest.mark.parametrize("days", ["-1", "366", "9" * 30, "x"])
def test_prune_refuses_days_that_make_no_sense(text, days):
    with pytest.raises(CommandError):
        run("prune_personal_tokens", "--days", days)
    assert authenticate(text)


def test_the_worker_prunes_what_ended_a_month_ago(user):
    personal_tokens.create(user=user, days=1)
    row = Schedule.objects.get(func="recording.accounts.personal_tokens.prune")
    assert (row.schedule_type, row.repeats) == (Schedule.DAILY, -1)
    prune, kwargs = import_string(row.func), ast.literal_eval(row.kwargs)
    with after(days=30):
        assert prune(**kwargs) == 0
    with after(days=32):
        assert prune(**kwargs) == 1


def test_programs_get_tokens_and_lists_as_json(user):
    created = json.loads(
        run("create_personal_token", "ada", "--days", "3", "--name", "ü", "--json")
    )
    assert authenticate(created["token"]) == user
    (listed,) = json.loads(run("list_personal_tokens", "--json"))
    assert listed["id"] == created["id"]
    assert listed["expires_at"] == created["expires_at"]
    assert (listed["user"], listed["name"], listed["state"]) == ("ada", "ü", "live")
    assert listed["last_used_at"] is not None
    assert created["token"] not in json.dumps(listed)
