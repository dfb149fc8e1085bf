"""What a key can be, wherever it is made; keys on the command line: made and revoked."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from gateway import keys
from gateway.identity import SCOPES
from gateway.models import GatewayKey
from tests.gateway.client import PATH, Api
from webhooks_core.models import bearer

pytestmark = pytest.mark.django_db

WHO: Any = {"tenant": "acme", "principal": "ada", "name": ""}
BUDGET = {"counts": "cost", "window": "month", "limit": 12.5}


def test_the_largest_values_are_accepted():
    models = [f"{number:x<128}" for number in range(100)]
    keys.check(**WHO | {"name": "x" * 100}, days=3650, models=models, budget=BUDGET)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"tenant": "a b"}, "tenant: 1 to 128 of the characters"),
        ({"tenant": "x" * 129}, "tenant: 1 to 128"),
        ({"principal": ""}, "principal: 1 to 128"),
        ({"name": "\t"}, "the name must be at most 100 printable characters"),
        ({"name": "x" * 101}, "the name must be at most 100"),
        ({"days": 0}, "days must be between 1 and 3650"),
        ({"days": 3651}, "days must be between"),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "must be in the future"),
        ({"scopes": []}, "scopes must be at least one of chat, events"),
        ({"scopes": ["admin"]}, "scopes must be at least one of chat, events"),
        ({"models": []}, "models must be 1 to 100 names"),
        ({"models": ["x"] * 101}, "models must be 1 to 100 names"),
        ({"models": ["x", "a\0"]}, "a model must have 1 to 128 printable characters"),
        ({"models": ["x" * 129]}, "a model must have 1 to 128"),
        ({"models": [""]}, "a model must have 1 to 128"),
        ({"budget": BUDGET | {"window": "decade"}}, "budget: window: must be 'minute'"),
        ({"budget": BUDGET | {"limit": 0}}, "budget: limit"),
        ({"budget": {}}, "budget: counts"),
    ],
)
def test_a_key_that_cannot_be_says_why(fields: dict[str, Any], text: str):
    with pytest.raises(keys.KeyInputError, match=text):
        keys.check(**WHO | fields)


# ── On the command line ─────────────────────────────────────────────────────────────


def run(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


def make(*arguments: str) -> str:
    return run(
        "create_gateway_key", "--tenant", "acme", "--principal", "ada", *arguments
    )


def test_the_key_alone_is_printed_and_works():
    printed = make()
    key = printed.removesuffix("\n")
    assert bearer.is_well_formed(key, keys.PREFIX)
    assert Api(key=key).call("GET", PATH).status_code == 200
    row = GatewayKey.objects.get()
    assert row.expires_at is None
    assert row.digest == bearer.digest(key)
    assert key not in str(vars(row))


def test_a_key_may_have_a_name_an_end_scopes_models_and_a_budget():
    make(
        *("--days", "2", "--name", "robot", "--scopes", "chat", "keys"),
        *("--models", "small", "large", "--budget", "cost", "month", "12.5"),
    )
    row = GatewayKey.objects.get()
    assert (row.name, row.expires_at) == ("robot", row.created_at + timedelta(days=2))
    assert row.rights.scopes == {"chat", "keys"}
    assert row.allowed_models == ["large", "small"]
    assert row.budget_entry is not None
    assert row.budget_entry.allowance == "a cost of 12.5 a month"
    make("--scopes", "all")
    assert GatewayKey.objects.latest("pk").rights.scopes == {*SCOPES}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--budget", "cost", "month", "much"), "budget: needs"),
        (("--scopes", "admin"), "invalid choice"),
        (("--days", "x"), "invalid int"),
    ],
)
def test_words_that_make_no_key_are_refused(arguments, words):
    with pytest.raises(CommandError, match=words):
        make(*arguments)
    assert not GatewayKey.objects.exists()


def test_revoked_keys_stop_working():
    one, two = make().strip(), make().strip()
    ids = [str(pk) for pk in GatewayKey.objects.values_list("pk", flat=True)]
    Api(key=one).call("GET", PATH)
    assert run("revoke_gateway_key", *ids) == "revoked 2\n"
    assert run("revoke_gateway_key", *ids) == "revoked 0\n"
    assert {Api(key=key).call("GET", PATH).status_code for key in (one, two)} == {401}


def test_an_unknown_key_is_an_error_and_the_others_are_revoked():
    make()
    key = GatewayKey.objects.get()
    absent = ("99999999999999999999", "0", "99999")
    words = r"^there is no key 0, 99999, 99999999999999999999$"
    with pytest.raises(CommandError, match=words):
        run("revoke_gateway_key", absent[0], str(key.pk), *absent[1:])
    key.refresh_from_db()
    assert key.revoked_at is not None
