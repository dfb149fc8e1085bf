"""What a login costs others: a rate per address, few hashes at once, nothing told by the time."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import requests
from django.db import connection
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError

from config.wsgi import application
from recording.accounts import logins, personal_tokens
from recording.oauth import throttles
from tests.config.serving.test_server import bridged
from tests.factories import UserFactory
from tests.recording.accounts.browsers import LOGIN, PASSWORD
from tests.recording.accounts.hashing import Watch, WatchedHasher
from tests.running import PATIENCE_S, until

CSRF = "a" * 32


@pytest.fixture
def watch(settings, monkeypatch) -> Iterator[Watch]:
    """Passwords are hashed by the watched hasher; whoever is stopped goes on at the end."""
    settings.PASSWORD_HASHERS = ["tests.recording.accounts.hashing.WatchedHasher"]
    watch = Watch()
    monkeypatch.setattr(WatchedHasher, "watch", watch)
    yield watch
    watch.gate.set()


@pytest.fixture
def slots(monkeypatch) -> logins.LoginSlots:
    """Slots that no other test has used."""
    slots = logins.LoginSlots(threads=8)
    monkeypatch.setattr(logins, "login_slots", lambda: slots)
    return slots


def with_own_connection(environ: Any, start_response: Any) -> Any:
    """The whole application; its threads end with this test, and so do their connections."""
    try:
        return application(environ, start_response)
    finally:
        connection.close()


def log_in(url: str, name: str) -> int:
    response = requests.post(
        url + LOGIN,
        data={"csrfmiddlewaretoken": CSRF, "username": name, "password": "guess"},
        cookies={"csrftoken": CSRF},
        timeout=60,
    )
    if response.status_code == 503:
        assert response.headers["Retry-After"] == "1"
        assert "Too many people are logging in" in response.text
    return response.status_code


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("slots")
def test_the_api_responds_while_sixteen_logins_are_in_flight(monkeypatch, watch):
    token = personal_tokens.create(user=UserFactory.create(username="ada"), days=1).text
    watch.gate.clear()
    with (
        bridged(with_own_connection, threads=8) as url,
        ThreadPoolExecutor(16) as pool,
    ):
        under_way: list[Future[int]] = [
            pool.submit(log_in, url, f"nobody-{number}") for number in range(16)
        ]
        try:
            refused = 16 - logins.HASHES_AT_ONCE - logins.WAITING
            until(
                lambda: sum(login.done() for login in under_way) >= refused,
                "most logins are refused",
            )
            bearer = {"Authorization": f"Bearer {token}"}
            responses = [
                requests.get(f"{url}/v1/webhooks", headers=bearer, timeout=PATIENCE_S)
                for _ in range(3)
            ]
            assert [response.status_code for response in responses] == [200] * 3
            assert watch.running == logins.HASHES_AT_ONCE
        finally:
            watch.gate.set()
        statuses = Counter(login.result() for login in under_way)
    assert watch.most == logins.HASHES_AT_ONCE
    assert set(statuses) == {200, 503}
    assert statuses[503] >= refused
    assert watch.hashes == statuses[200]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("slots")
def test_a_few_logins_wait_for_a_slot(monkeypatch, watch):
    monkeypatch.setattr(logins, "WAIT_S", 60)
    watch.gate.clear()
    with bridged(with_own_connection, threads=8) as url, ThreadPoolExecutor(4) as pool:
        under_way = [
            pool.submit(log_in, url, f"nobody-{number}")
            for number in range(logins.HASHES_AT_ONCE + logins.WAITING)
        ]
        until(lambda: watch.running == logins.HASHES_AT_ONCE, "two hashes run")
        watch.gate.set()
        assert {login.result() for login in under_way} == {200}
    assert watch.most == logins.HASHES_AT_ONCE


@pytest.mark.parametrize(
    ("threads", "running"), [(1, 1), (2, 1), (4, 2), (8, 2), (1000, 2)]
)
def test_logins_take_at_most_half_of_the_threads(monkeypatch, threads, running):
    monkeypatch.setattr(logins, "WAIT_S", 0.01)
    slots = logins.LoginSlots(threads=threads)

    def take() -> int:
        """Return how many slots one thread takes before one is refused."""
        try:
            with slots.slot():
                return 1 + take()
        except logins.LoginBusyError:
            return 0

    assert [take(), take()] == [running, running]


@pytest.mark.django_db
def test_an_unknown_name_takes_as_long_as_a_known_one(watch):
    UserFactory.create(staff=True, username="ada", password=PASSWORD)
    UserFactory.create(username="gone", password=PASSWORD, is_active=False)
    UserFactory.create(username="machine", password=None)
    costs = {}
    for name in ("ada", "gone", "machine", "nobody"):
        before = watch.hashes
        response = Client().post(LOGIN, {"username": name, "password": "guess"})
        assert response.status_code == 200
        costs[name] = watch.hashes - before
    assert costs == dict.fromkeys(costs, 1)


@pytest.mark.django_db
def test_an_address_logs_in_only_so_often(settings, watch):
    settings.OAUTH_RATES = settings.OAUTH_RATES | {"login": "4/minute"}
    UserFactory.create(staff=True, username="ada", password=PASSWORD)
    peer = f"192.0.2.{secrets.randbelow(250)}"

    def post(peer: str, name: str, password: str) -> Any:
        form = {"username": name, "password": password}
        return Client().post(f"{LOGIN}?next=/docs", form, REMOTE_ADDR=peer)

    for number in range(4):
        response = post(peer, f"nobody-{number}", "guess")
        assert response.status_code == 200
    before = watch.hashes
    response = post(peer, "ada", PASSWORD)
    assert response.status_code == 429
    assert 1 <= int(response["Retry-After"]) <= 60
    assert f'href="{LOGIN}?next=/docs"' in response.content.decode()
    assert watch.hashes == before
    assert post("198.51.100.1", "ada", PASSWORD).status_code == 302
    assert Client().get(LOGIN, REMOTE_ADDR=peer).status_code == 200


@pytest.mark.django_db
def test_the_lock_holds_for_one_name_and_one_address():
    UserFactory.create(superuser=True, username="ada", password=PASSWORD)

    def post(peer: str, name: str, password: str) -> Any:
        form = {"username": name, "password": password}
        return Client().post(LOGIN, form, REMOTE_ADDR=peer)

    assert post("192.0.2.3", "ada", "guess").status_code == 200
    for _ in range(9):
        post("192.0.2.3", "ada", "guess")
    locked = post("192.0.2.3", "ada", PASSWORD)
    assert (locked.status_code, locked["Retry-After"]) == (429, "900")
    assert post("192.0.2.3", "eve", "guess").status_code == 200
    assert post("192.0.2.4", "ada", PASSWORD).status_code == 302


@pytest.mark.django_db
def test_the_admin_has_no_login_of_its_own():
    UserFactory.create(username="ada", password=PASSWORD)
    form, page = {"username": "ada", "password": PASSWORD}, "/admin/login/"
    client = Client()
    response = client.post(f"{page}?next=/admin/auth/", form)
    assert response["Location"] == f"{LOGIN}?next=%2Fadmin%2Fauth%2F"
    client.post(LOGIN, form)
    assert client.get(page)["Location"] == "/accounts"  # is no staff


@pytest.mark.django_db
def test_without_redis_a_login_goes_on_and_is_not_counted(monkeypatch, caplog):
    def fail(*_: object) -> None:
        raise RedisConnectionError("redis://secret@host")

    monkeypatch.setattr(throttles, "check", fail)
    UserFactory.create(superuser=True, username="ada", password=PASSWORD)
    form = {"username": "ada", "password": PASSWORD}
    assert Client().post(LOGIN, form).status_code == 302
    assert "login throttle unavailable" in caplog.text


@pytest.mark.django_db
def test_a_name_that_no_account_can_have_is_refused_as_any_other(watch):
    client = Client(raise_request_exception=False)
    watch.gate.set()
    for name in ("nobody", "n" * 151, "n" * 300):
        response = client.post(LOGIN, {"username": name, "password": "guess"})
        assert response.status_code == 200
        assert 'role="alert"' in response.content.decode()
