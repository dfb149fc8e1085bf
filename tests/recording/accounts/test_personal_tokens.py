import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import Schedule

from recording.accounts import personal_tokens
from recording.accounts.personal_tokens import authenticate
from recording.models import PersonalToken
from tests.clock import travel

pytestmark = pytest.mark.django_db


def run(command, *args: str, **options):
    out = io.StringIO()
    call_command(command, *args, stdout=out, **options)
    return out.getvalue()


def after(**span):
    return travel(timezone.now() + timedelta(**span), tick=False)


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
    unused = personal_tokens.create(user=user, days=365).text
    with after(days=89):
        assert authenticate(text) == user
    with after(days=90):
        assert authenticate(unused) is None
    with after(days=89 + 89):
        assert authenticate(text) == user
    with after(days=89 + 89 + 90):
        assert authenticate(text) is None


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
            travel(now + timedelta(minutes=minutes), tick=False),
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


@pytest.mark.spec("recording", "a schedule prunes the tokens that ended a month ago")
def test_the_worker_prunes_what_ended_a_month_ago(text, user):
    personal_tokens.create(user=user, days=1)
    revoked = personal_tokens.create(user=user, days=365).token
    PersonalToken.objects.filter(pk=revoked.pk).revoke(timezone.now())
    row = Schedule.objects.get(func="recording.accounts.personal_tokens.prune")
    assert (row.schedule_type, row.repeats) == (Schedule.DAILY, -1)
    prune = import_string(row.func)
    deleted = []
    for days in (29, 32, 119, 121):  # the first one was never used: it ended on day 90
        with after(days=days):
            deleted.append(prune())
    assert deleted == [0, 2, 0, 1]
