"""Passkeys as the second step of a login: made, used, and every answer that is not genuine."""

from __future__ import annotations

import json
import re
import threading
from contextlib import suppress
from copy import copy
from functools import partial
from html import unescape
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from fido2.server import Fido2Server

from recording.accounts import second_factors
from recording.models import SecurityEvent
from tests.factories import UserFactory
from tests.recording.accounts.browsers import PASSWORD, is_logged_in, log_in
from tests.recording.accounts.soft_authenticator import ORIGIN, Device
from tests.recording.accounts.two_step import PAGE, STEP, password_step
from tests.threads import together

ADD = f"{PAGE}/passkeys"


@pytest.fixture
def visitor(ada, settings) -> Client:
    settings.BASE_URL = ORIGIN
    return log_in()


@pytest.fixture
def device() -> Device:
    return Device()


def options_of(response: Any) -> dict[str, Any]:
    found = re.search(r'data-passkey="([^"]+)"', response.content.decode())
    assert found
    options: dict[str, Any] = json.loads(unescape(found[1]))
    return options


def start(visitor: Client) -> dict[str, Any]:
    return options_of(visitor.get(ADD))


def passkeys() -> Any:
    return Authenticator.objects.filter(type="webauthn")


def digests() -> Any:
    return Authenticator.objects.get(type="recovery_codes").data


def add(visitor: Client, answer: str, name: str = "Key") -> Any:
    return visitor.post(ADD, {"name": name, "credential": answer})


@pytest.fixture
def registered(visitor, device):
    assert add(visitor, device.make(start(visitor))).status_code == 200
    return device


def use(client: Client, answer: str) -> Any:
    return client.post(STEP, {"credential": answer})


def test_a_passkey_is_added_with_recovery_codes_and_logs_in(visitor, device):
    response = add(visitor, device.make(start(visitor)), "  My   key ")
    page = response.content.decode()
    assert "<bdi>My key</bdi>" in visitor.get(PAGE).content.decode()
    assert len(re.findall(r"<code>[a-z2-9-]{19}</code>", page)) == 10
    client = password_step()
    answer = device.sign(options_of(client.get(STEP)))
    assert use(client, answer)["Location"] == "/accounts"
    assert is_logged_in(client)
    assert passkeys().get().last_used_at


def test_a_second_passkey_leaves_the_recovery_codes(visitor, registered):
    before = digests()
    add(visitor, Device().make(start(visitor)))
    assert passkeys().count() == 2
    assert digests() == before


def test_an_answer_is_used_once(registered):
    client = password_step()
    answer = registered.sign(options_of(client.get(STEP)))
    assert use(client, answer).status_code == 302
    again = password_step()
    again.get(STEP)
    assert use(again, answer).status_code == 200
    assert not is_logged_in(again)


def test_the_answer_to_an_earlier_challenge_is_refused(registered):
    client = password_step()
    answer = registered.sign(options_of(client.get(STEP)))
    client.get(STEP)
    assert use(client, answer).status_code == 200
    assert not is_logged_in(client)


@pytest.mark.parametrize("lie", ["origin", "host", "key", "credential_id", "counter"])
def test_an_answer_that_is_not_genuine_is_refused(registered, lie):
    passkey = passkeys().get()
    passkey.data["counter"] = 5
    passkey.save()
    registered.counter = 5
    stranger = Device()
    lies = {
        "origin": "https://evil.signpost.example",
        "host": "evil.example",
        "key": stranger.key,
        "credential_id": stranger.credential_id,
        "counter": 4,
    }
    setattr(registered, lie, lies[lie])
    client = password_step()
    assert use(client, registered.sign(options_of(client.get(STEP)))).status_code == 200
    assert not is_logged_in(client)


def test_a_passkey_of_another_account_is_refused(registered, ada):
    eve = UserFactory.create(username="eve")
    Authenticator.objects.update(user=eve)
    assert not second_factors.are_asked_for(ada)
    mine = Device()
    client = log_in()
    add(client, mine.make(start(client)))
    step = password_step()
    assert use(step, registered.sign(options_of(step.get(STEP)))).status_code == 200
    assert not is_logged_in(step)


MALFORMED = ["", "x", "[]", "{}", "null", '{"id": 1}', "[" * 19_000, "9" * 30_000]


@pytest.mark.parametrize("answer", MALFORMED)
def test_a_malformed_answer_is_refused_and_changes_nothing(visitor, registered, answer):
    start(visitor)
    assert 'role="alert" id="problem"' in add(visitor, answer).content.decode()
    assert passkeys().count() == 1
    client = password_step()
    client.get(STEP)
    assert 'role="alert" id="problem"' in use(client, answer).content.decode()
    assert not is_logged_in(client)


@pytest.mark.usefixtures("locks_at_three")
def test_wrong_answers_count_towards_the_lock(registered):
    client = password_step()
    statuses = [use(client, "{}").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


def test_the_challenge_of_a_login_adds_no_passkey(registered, ada):
    [code, *_] = second_factors.renew_recovery_codes(ada)
    client = password_step()
    options = options_of(client.get(STEP))
    client.post(STEP, {"code": code})
    assert is_logged_in(client)
    add(client, Device().make(options))
    assert passkeys().count() == 1


def test_a_passkey_that_is_removed_meanwhile_logs_nobody_in(registered, monkeypatch):
    client = password_step()
    answer = registered.sign(options_of(client.get(STEP)))
    complete = Fido2Server.authenticate_complete

    def remove_first(*arguments: Any) -> Any:
        credential = complete(*arguments)
        passkeys().delete()
        return credential

    monkeypatch.setattr(Fido2Server, "authenticate_complete", remove_first)
    assert use(client, answer).status_code == 200
    assert not is_logged_in(client)


@pytest.mark.django_db(transaction=True)
def test_of_two_last_passkeys_removed_at_once_the_second_takes_all(
    visitor, registered, monkeypatch
):
    add(visitor, Device().make(start(visitor)))
    addresses = [f"{ADD}/{passkey.pk}/remove" for passkey in passkeys()]
    clients = [copy(visitor) for _ in addresses]
    both, delete = threading.Barrier(2), Authenticator.delete

    def wait_and_delete(passkey: Authenticator) -> Any:
        with suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.5)
        return delete(passkey)

    monkeypatch.setattr(Authenticator, "delete", wait_and_delete)

    def remove(client: Client, address: str) -> Any:
        return client.post(address)

    together(*map(partial(partial, remove), clients, addresses))
    assert not Authenticator.objects.exists()
    # The first of both may record its event after the second.
    assert SecurityEvent.objects.filter(kind="second_step_removed").exists()


def test_a_passkey_is_added_once_and_only_after_a_login(visitor, device):
    options = start(visitor)
    answer = device.make(options)
    assert add(visitor, answer).status_code == 200
    assert 'role="alert" id' in add(visitor, answer).content.decode()  # it was used
    visitor.logout()
    assert add(visitor, answer).status_code == 302
    assert passkeys().count() == 1


def test_the_device_learns_no_id_of_the_account(visitor, ada):
    user = start(visitor)["user"]
    assert user["name"] == "ada"
    assert len(user["id"]) > 40


@pytest.mark.parametrize(
    ("given", "shown"), [(" Work  phone ", "Work phone"), ("", "Unknown browser")]
)
def test_a_passkey_is_renamed_by_its_owner_only(visitor, registered, given, shown):
    UserFactory.create(username="eve", password=PASSWORD)
    address, eve = f"{ADD}/{passkeys().get().pk}", log_in("eve")
    for path in (address, f"{address}/remove", f"{ADD}/{10**30}"):
        assert eve.post(path, {"name": "Hers"}).status_code == 404
    assert 'value="Key"' in visitor.get(address).content.decode()
    response = visitor.post(address, {"name": given})
    if given:
        assert response["Location"] == PAGE
        assert str(passkeys().get()) == shown
    else:
        assert str(passkeys().get()) == "Key"


@pytest.mark.parametrize("base", ["http://127.0.0.1:8000", "https://[::1]"])
def test_an_address_without_a_name_serves_no_passkeys(visitor, settings, base):
    settings.BASE_URL = base
    assert "Add a passkey" not in visitor.get(PAGE).content.decode()
    assert visitor.get(ADD).status_code == 404
