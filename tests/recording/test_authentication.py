from __future__ import annotations

from urllib.parse import urlencode

import pytest

from recording.accounts import personal_tokens
from recording.accounts.token_lookup import TokenLookup
from recording.models import PersonalToken
from tests.recording.accounts.browsers import logged_in
from tests.recording.conftest import error_of
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
    error_of(response, 401, "unauthorized")
    assert response["WWW-Authenticate"].startswith("Bearer realm=")
    assert api.token not in response.content.decode()


def test_the_challenge_distinguishes_a_refused_token_from_a_missing_one(api):
    missing = api.get("webhooks", headers={"Authorization": ""})
    refused = api.get("webhooks", headers={"Authorization": "Bearer nonsense"})
    assert "error" not in missing["WWW-Authenticate"]
    assert 'error="invalid_token"' in refused["WWW-Authenticate"]


def test_a_token_in_the_query_or_a_body_and_a_session_are_no_token(api):
    client, path, sent = (
        logged_in(api.user),
        "/v1/webhooks",
        {"access_token": api.token},
    )
    for response in (
        client.get(path, sent),
        client.post(path, urlencode(sent), FORM),
        client.post(path, sent, "application/json"),
    ):
        error_of(response, 401, "unauthorized")


def test_no_cookie_is_read_or_set(api):
    assert not api.get("webhooks").cookies


def test_a_lookup_takes_the_digest_alone():
    lookup = TokenLookup(
        lambda digest: PersonalToken.objects.filter(digest=digest, name="x"), ("id",)
    )
    with pytest.raises(TypeError, match="only parameter"):
        lookup.find("0" * 64)
