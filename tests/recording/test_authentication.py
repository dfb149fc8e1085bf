from urllib.parse import urlencode

import pytest
from django.utils import timezone

from recording import token_memory
from recording.accounts import personal_tokens
from recording.models import PersonalToken
from tests.clock import travel
from tests.products.product import RECORDING
from tests.recording.accounts.browsers import logged_in
from tests.recording.oauth.flows import FORM
from webhooks_core.models import bearer as opaque

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
@pytest.mark.spec("recording", "protected requests carry Authorization: Bearer")
@pytest.mark.spec(
    "recording",
    "an application connects one account by a personal token",
    "personal tokens use the same Bearer header",
)
def test_a_live_token_is_accepted(api, scheme):
    headers = {"Authorization": f"{scheme} {api.token}"}
    response = api.get("webhooks", headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("_case", "header"),
    [
        ("no header", ""),
        ("another scheme", "Basic YTpi"),
        ("the scheme alone", "Bearer"),
        ("the scheme and a space", "Bearer "),
        ("the token alone", "{token}"),
        ("two tokens", "Bearer {token} {token}"),
        ("a list", "Bearer {token}, Bearer {token}"),
        ("a quoted token", 'Bearer "{token}"'),
        ("the token and a NUL", "Bearer {token}\0"),
        ("not ASCII", "Bearer {token}ü"),
        ("no space", "Bearer{token}"),
        ("a tab", "Bearer\t{token}"),
        ("another case", "Bearer {swapped}"),
        ("one character less", "Bearer {shorter}"),
        ("a stranger's", "Bearer rec_pat_x"),
        ("well formed and unknown", "Bearer {unknown}"),
        ("of another kind", "Bearer {other}"),
        ("very long", "Bearer " + "x" * 5000),
    ],
)
@pytest.mark.spec(
    "recording", "missing or invalid Bearer token yields 401 unauthorized"
)
def test_anything_else_is_401_with_a_challenge(api, _case, header):
    header = header.format(
        token=api.token,
        swapped=api.token.swapcase(),
        shorter=api.token[:-1],
        unknown=opaque.make(personal_tokens.PREFIX),
        other=opaque.make("gw_key_"),
    )
    response = api.get("webhooks", headers={"Authorization": header})
    RECORDING.error(response, 401)
    assert response["WWW-Authenticate"].startswith("Bearer realm=")
    assert api.token not in response.content.decode()


def test_a_token_in_the_query_or_a_body_and_a_session_are_no_token(api):
    client, path = logged_in(api.user), "/v1/webhooks"
    sent = {"access_token": api.token}
    for response in (
        client.get(path, sent),
        client.post(path, urlencode(sent), FORM),
        client.post(path, sent, "application/json"),
    ):
        RECORDING.error(response, 401)


def deactivate(account):
    account.is_active = False
    account.save()


ENDS = {
    "revoked": lambda account: PersonalToken.objects.filter(user=account).revoke(
        timezone.now()
    ),
    "deleted": lambda account: PersonalToken.objects.filter(user=account).delete(),
    "account deactivated": deactivate,
    "account deleted": lambda account: account.delete(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_token_is_looked_up_once_and_its_end_counts_at_once(
    api, end, django_assert_num_queries
):
    with travel(timezone.now(), tick=False):
        assert api.get("webhooks").status_code == 200
        with django_assert_num_queries(1):
            assert api.get("webhooks").status_code == 200
        end(api.user)
        RECORDING.error(api.get("webhooks"), 401)


def test_what_is_revoked_before_the_end_of_its_look_up_is_not_remembered(
    api, django_capture_on_commit_callbacks
):
    def look_up(token):
        token_memory.forget()  # another thread revokes it
        return api.user

    assert token_memory.find(api.token, look_up) == api.user
    assert token_memory.recall(api.token) is None
    with django_capture_on_commit_callbacks(execute=True):
        token_memory.revoked()
        token_memory.find(api.token, lambda _: api.user)  # another transaction
    assert token_memory.recall(api.token) is None


def test_a_token_is_remembered_for_some_seconds_also_when_the_clock_goes_back(api):
    with travel("2030-01-01T12:00", tick=False) as clock:
        token_memory.find(api.token, lambda _: api.user)
        clock.shift(4.9)
        assert token_memory.recall(api.token) == api.user
        clock.shift(0.1)
        assert token_memory.recall(api.token) is None
        clock.shift(-10)
        assert token_memory.recall(api.token) is None
