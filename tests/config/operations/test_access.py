import pytest
from django.contrib.auth.models import AnonymousUser, User

from config.operations.access import is_local, may_see_state

ELSEWHERE = {"REMOTE_ADDR": "203.0.113.9"}
TOKEN = "a-token-that-nobody-guesses"


def asked(rf, user=None, **meta):
    request = rf.get("/", **meta)
    request.user = user or AnonymousUser()
    return request


def test_this_machine_may_see_the_state(rf):
    assert may_see_state(asked(rf, REMOTE_ADDR="127.0.0.1"))
    assert may_see_state(asked(rf, REMOTE_ADDR="::1"))


@pytest.mark.parametrize("address", ["203.0.113.9", "10.0.0.7", "", "unix:", "1" * 99])
def test_other_machines_may_not(rf, address):
    assert not may_see_state(asked(rf, REMOTE_ADDR=address))


@pytest.mark.parametrize(
    "header",
    [
        "HTTP_FORWARDED",
        "HTTP_X_FORWARDED_FOR",
        "HTTP_X_FORWARDED_PROTO",
        "HTTP_X_FORWARDED_ANYTHING",
        "HTTP_X_REAL_IP",
        "HTTP_VIA",
    ],
)
@pytest.mark.parametrize("value", ["127.0.0.1", ""])
def test_a_proxy_on_this_machine_is_not_this_machine(rf, header, value):
    assert not is_local(asked(rf, **{header: value}))


def test_a_page_of_another_site_that_leads_here_is_not_this_machine(rf):
    assert is_local(asked(rf, HTTP_HOST="localhost:8000"))
    assert not is_local(asked(rf, HTTP_HOST="evil.example"))


def test_the_token_opens_from_anywhere(rf, settings):
    settings.METRICS_TOKEN = TOKEN
    assert may_see_state(asked(rf, HTTP_AUTHORIZATION=f"Bearer {TOKEN}", **ELSEWHERE))


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", "Bearer no", f"Basic {TOKEN}"]
)
@pytest.mark.parametrize("expected", ["", TOKEN])
def test_no_other_token_does(rf, settings, given, expected):
    settings.METRICS_TOKEN = expected
    assert not may_see_state(asked(rf, HTTP_AUTHORIZATION=given, **ELSEWHERE))


@pytest.mark.parametrize(
    ("_case", "fields", "expected"),
    [
        ("staff", {"is_staff": True}, True),
        ("people", {}, False),
        ("former staff", {"is_staff": True, "is_active": False}, False),
    ],
)
def test_staff_may_see_the_state(rf, _case, fields, expected):
    assert may_see_state(asked(rf, User(**fields), **ELSEWHERE)) is expected
