"""What is ours of logins: who is limited together, what a new password ends, what is encrypted."""

from smtplib import SMTPException
from typing import Any

import pytest
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from asgiref.sync import async_to_sync
from django.core.cache import cache
from django.test import Client

from config import asgi, third_party
from recording.accounts import personal_tokens
from tests.recording.accounts.browsers import LOGIN, PASSWORD, is_logged_in, log_in
from webhooks_core.models import reencryption
from webhooks_core.secrets import EncryptedText

NEW = "battery staple 7"


@pytest.fixture
def limits(settings) -> None:
    """The limits of a running instance."""
    cache.clear()
    settings.ACCOUNT_RATE_LIMITS = third_party.ACCOUNT_RATE_LIMITS


def attempt(password: str, **meta: Any) -> Any:
    return Client(**meta).post(LOGIN, {"login": "ada", "password": password})


# ── Who may log in, and how often ───────────────────────────────────────────────────


def test_nobody_signs_up(db):
    form = {"username": "eve", "password1": NEW, "password2": NEW}
    for response in (
        Client().get("/accounts/signup/"),
        Client().post("/accounts/signup/", form),
    ):
        assert "closed" in response.content.decode()


def test_ten_failures_lock_a_name_for_one_address_behind_a_proxy_alone(
    ada, limits, settings
):
    settings.TRUSTED_PROXY_COUNT = 1
    for port in range(10):
        failed = attempt("wrong", HTTP_X_FORWARDED_FOR=f"198.51.100.7:{5000 + port}")
        assert "not correct" in failed.content.decode()
    locked = attempt(PASSWORD, HTTP_X_FORWARDED_FOR="198.51.100.7:1")
    assert "Too many failed" in locked.content.decode()
    assert attempt(PASSWORD, HTTP_X_FORWARDED_FOR="203.0.113.9:1").status_code == 302


def test_the_addresses_of_one_ipv6_network_share_the_rate_of_logins(ada, limits):
    peers: list[dict[str, Any]] = [
        {"REMOTE_ADDR": f"2001:db8:1:2::{number:x}"} for number in range(1, 32)
    ]
    codes = [
        Client(**peer).post(LOGIN, {"login": f"name{n}", "password": "x"}).status_code
        for n, peer in enumerate(peers)
    ]
    assert codes == [200] * 30 + [429]
    assert attempt(PASSWORD, REMOTE_ADDR="192.0.2.1").status_code == 302


@pytest.mark.parametrize(
    ("method", "path", "is_apart"),
    [
        *(("POST", "/accounts/login/", True), ("GET", "/accounts/login/", False)),
        *(("POST", "/accounts/reauthenticate/", True), ("POST", "/v1/webhooks", False)),
        ("POST", "/accounts/password/change/", True),
    ],
)
def test_a_flood_of_logins_leaves_threads_to_others(
    monkeypatch, method, path, is_apart
):
    served = []

    def bridge(name: str) -> Any:
        async def serve(*_: Any) -> None:
            served.append(name)

        return serve

    for name in ("logins", "everything_else"):
        monkeypatch.setattr(asgi, name, bridge(name))
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    unused: Any = None
    async_to_sync(asgi.application)(scope, unused, unused)
    assert served == ["logins" if is_apart else "everything_else"]


# ── The admin ───────────────────────────────────────────────────────────────────────


def test_the_admin_s_login_is_the_same_page(ada):
    response = Client().get("/admin/", follow=True)
    assert response.redirect_chain[-1][0] == f"{LOGIN}?next=%2Fadmin%2F"


def test_a_setting_requires_a_second_factor_of_staff(ada, settings):
    settings.REQUIRE_STAFF_SECOND_FACTOR = True
    client = log_in()
    page = client.get("/admin/", follow=True)
    assert page.redirect_chain[-1][0] == "/accounts/2fa/"
    assert "needs a two-step login" in page.content.decode()
    secret = add_app(ada)
    client = log_in()
    assert not is_logged_in(client)
    client.post("/accounts/2fa/authenticate/", {"code": code_of(secret)})
    assert client.get("/admin/").status_code == 200


# ── A new password ──────────────────────────────────────────────────────────────────


def change(client: Client, old: str, new: str, **more: str) -> Any:
    form = {"oldpassword": old, "password1": new, "password2": new}
    return client.post("/accounts/password/change/", form | more)


@pytest.mark.parametrize("ends", [True, False])
def test_a_change_ends_sessions_and_what_its_form_says(app, user, ends):
    mine, other = log_in(), log_in()
    token = personal_tokens.create(user=user, days=1).text
    refresh = app.tokens()["refresh_token"]
    page = mine.get("/accounts/password/change/").content.decode()
    assert 'name="end_access" id="id_end_access" checked' in page
    change(mine, PASSWORD, NEW, **({"end_access": "on"} if ends else {}))
    assert (is_logged_in(mine), is_logged_in(other)) == (True, False)
    assert (personal_tokens.authenticate(token) is None) is ends
    assert (app.refresh(refresh).status_code == 400) is ends


@pytest.mark.parametrize("ends", [True, False])
def test_a_reset_does_the_same_and_its_link_leads_to_the_site(
    user, settings, mailoutbox, ends
):
    settings.BASE_URL = "https://signpost.example"
    settings.ALLOWED_HOSTS = ["other.example", "testserver"]
    session, token = log_in(), personal_tokens.create(user=user, days=1).text
    Client().post(
        "/accounts/password/reset/",
        {"email": user.email},
        headers={"Host": "other.example"},
    )
    [message] = mailoutbox
    assert message.subject.startswith("Signpost: ")
    [address] = [
        word for word in message.body.split() if "/password/reset/key/" in word
    ]
    assert address.startswith("https://signpost.example/accounts/")
    person = Client()
    page = person.get(address.removeprefix("https://signpost.example"), follow=True)
    form = {"password1": NEW, "password2": NEW} | ({"end_access": "on"} if ends else {})
    person.post(page.wsgi_request.path, form)
    assert is_logged_in(log_in(password=NEW))
    assert not is_logged_in(session)
    assert (personal_tokens.authenticate(token) is None) is ends


@pytest.mark.parametrize("sends", [True, False])
def test_a_reset_is_offered_where_mail_can_be_sent(client, settings, sends):
    settings.SENDS_EMAIL = sends
    page = client.get("/accounts/login/").content.decode()
    assert ("Forgot your password?" in page) is sends


def test_a_reset_tells_nothing_about_addresses(ada, mailoutbox):
    known, unknown = (
        Client().post("/accounts/password/reset/", {"email": email}, follow=True)
        for email in (ada.email, "nobody@example.org")
    )
    assert known.redirect_chain == unknown.redirect_chain
    assert len(mailoutbox) == 1


def test_the_account_is_told_of_a_change_also_where_no_e_mail_can_be_sent(
    ada, mailoutbox, monkeypatch
):
    change(log_in(), PASSWORD, NEW)
    assert [message.to for message in mailoutbox] == [[ada.email]]

    def fail(*_: Any) -> None:
        raise SMTPException

    monkeypatch.setattr(
        "django.core.mail.backends.locmem.EmailBackend.send_messages", fail
    )
    assert change(log_in(password=NEW), NEW, PASSWORD).status_code == 302
    assert is_logged_in(log_in())


# ── Second factors ──────────────────────────────────────────────────────────────────


def add_app(account: Any) -> str:
    secret = str(generate_totp_secret())
    TOTP.activate(account, secret)
    return secret


def code_of(secret: str) -> str:
    from allauth.mfa.totp.internal import auth

    [*_, counter] = [*auth.yield_hotp_counters_from_time()][:2]
    return str(auth.format_hotp_value(auth.hotp_value(secret, counter)))


def test_keys_are_encrypted_and_take_part_in_a_change_of_the_key(ada, settings):
    secret = add_app(ada)
    codes = RecoveryCodes.activate(ada).generate_codes()
    rows = {row.type: row.data for row in Authenticator.objects.all()}
    stored = [rows["totp"]["secret"], rows["recovery_codes"]["seed"]]
    assert EncryptedText(stored[0]).decrypt() == secret
    assert secret not in str(rows)
    assert not any(code in str(rows) for code in codes)
    assert reencryption.reencrypt() == (2, 0)
    rows = {row.type: row.data for row in Authenticator.objects.all()}
    assert rows["totp"]["secret"] not in stored
    assert EncryptedText(rows["totp"]["secret"]).decrypt() == secret


def test_passkeys_belong_to_the_site_of_the_setting(settings):
    settings.BASE_URL = "https://signpost.example:8443"
    entity = get_adapter().get_public_key_credential_rp_entity()
    assert entity == {"id": "signpost.example", "name": "Signpost"}


def test_operators_see_no_key_and_remove_a_lost_factor(ada, admin_client):
    add_app(ada)
    row = Authenticator.objects.get()
    address = f"/admin/mfa/authenticator/{row.pk}/"
    page = admin_client.get(f"{address}change/").content.decode()
    assert row.data["secret"] not in page
    assert admin_client.get("/admin/mfa/authenticator/add/").status_code == 403
    admin_client.post(f"{address}delete/", {"post": "yes"})
    assert is_logged_in(log_in())


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "",
            "{}",
            "[]",
            "null",
            "1",
            "0",
            "false",
            '{"id": 1}',
            '{"id": {}, "response": 1}',
        ),
        '{"id": "a", "rawId": "é", "type": "public-key", "response": {}}',
        '{"id":"a","rawId":"a","type":"public-key","response":{"clientDataJSON":"%"}}',
    ],
)
def test_a_malformed_answer_of_a_passkey_is_refused(ada, answer):
    form = {"credential": answer, "name": "Key"}
    client = log_in()
    assert client.post("/accounts/2fa/webauthn/add/", form).status_code == 200
    add_app(ada)
    assert client.post("/accounts/2fa/webauthn/reauthenticate/", form).status_code < 400
    client = log_in()
    assert client.post("/accounts/2fa/authenticate/", form).status_code == 200
    assert not is_logged_in(client)
