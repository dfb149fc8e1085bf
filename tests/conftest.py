"""Fixtures that every test may use."""

import fcntl
import os
import shutil
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from django.test import TransactionTestCase

from tests import database, running
from tests.running import environment, migrate
from tests.spec.matrix import is_slow
from webhooks_core import profiles
from webhooks_core.dispatch import notify
from webhooks_core.network.url_policy import UrlPolicy
from webhooks_core.profiles import EventType, RetryPolicy, WebhookProfile

# A proxy of the environment cannot reach loopback, where all servers of the tests are. Programs that
# the tests start get this environment.
for _name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[_name]

REDIS_DATABASES = 16  # of a server as it comes
DATABASE_FIXTURES = frozenset({"db", "transactional_db", "live_server"})

# A slow machine is no fault of the code: no test is timed. Each run tries the same examples, so
# that the same code is green or red on every machine.
hypothesis.settings.register_profile(
    "untimed",
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# `--hypothesis-profile=long`: random searches that take a quarter of an hour instead of seconds.
hypothesis.settings.register_profile("long", print_blob=True, derandomize=False)
hypothesis.settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record",
        action="store_true",
        help="write what the conversations of tests/gateway/chat/apis/pairs become now",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let logins and clients cost nothing: slow hashes took a tenth of the suite's time."""
    if config.option.markexpr != "not slow":
        config.pluginmanager.import_plugin("schemathesis.pytest.plugin")
    fast = "django.contrib.auth.hashers.MD5PasswordHasher"
    settings.PASSWORD_HASHERS = [fast, *settings.PASSWORD_HASHERS]
    # Each test client would list all static files: a third of the time of a test with one request.
    settings.WHITENOISE_AUTOREFRESH = True
    # All tests log in from one address.
    settings.ACCOUNT_RATE_LIMITS = False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spare each worker the import of what `make test` leaves out."""
    return (config.option.markexpr == "not slow" and is_slow(collection_path)) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what drives a browser or starts whole instances, and what uses the services."""
    if is_slow(item.path):
        item.add_marker(pytest.mark.slow)
    if item.get_closest_marker("django_db") or DATABASE_FIXTURES.intersection(
        getattr(item, "fixturenames", ())
    ):
        item.add_marker(pytest.mark.services)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Start more workers than processors, for many tests wait; none for what names only files."""
    if all(".py" in argument for argument in config.args):
        return 0
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: Sequence[Any]) -> None:
    """Give each worker a Redis database of its own: clearing a cache empties all of it."""
    url, _, number = os.environ.get("REDIS_URL", "").rpartition("/")
    if not number.isdigit():
        return
    first = int(number)
    left = max(1, REDIS_DATABASES - first)
    for n, spec in enumerate(specs):
        spec.env["REDIS_URL"] = f"{url}/{first + n % left}"


def is_copied() -> bool:
    """Return True if workers share what one of them has migrated: it takes seconds of processor time."""
    return connection.vendor == "sqlite" and "PYTEST_XDIST_WORKER" in os.environ


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb) -> bool:
    return is_copied() or django_db_keepdb


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings, tmp_path_factory, request
) -> None:
    """Use a file of this run: in memory, threads would share one connection and its locks."""
    if connection.vendor != "sqlite":
        return
    file = tmp_path_factory.getbasetemp() / "test.sqlite3"
    connection.settings_dict["TEST"]["NAME"] = str(file)
    if is_copied():
        shutil.copy(request.getfixturevalue("migrated_file"), file)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker) -> Iterator[None]:
    """Let tests that commit restore the migrated database instead of making it anew."""
    with django_db_blocker.unblock():
        restore = database.restorer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", restore)
        yield
    with django_db_blocker.unblock():
        database.end_other_sessions()


PLAIN = WebhookProfile(
    name="plain",
    event_types={
        name: EventType(name=name, description=name, sample={"n": 1})
        for name in ("thing.made", "thing.lost")
    },
    matches=lambda types, event_type: event_type in types,
    headers=lambda it: {
        "X-Event": it.event_id,
        "X-Delivery": it.delivery_id,
        "X-Timestamp": str(it.timestamp),
    },
    retry=RetryPolicy((60, 300)),
    timeout_s=60.0,
    url_policy=UrlPolicy(local_schemes=frozenset({"http", "https"})),
    quota=100,
    endpoint_prefix="ep_",
    disable_after=3,
)


@pytest.fixture
def plain(monkeypatch) -> WebhookProfile:
    """A product of its own, so that the engine is tested without any other."""
    monkeypatch.setitem(profiles.PROFILES, "plain", PLAIN)
    return PLAIN


@pytest.fixture
def use_profile(monkeypatch, plain):
    """Change fields of the plain profile: `use_profile(timeout_s=0.2)`."""

    def change(**fields: Any) -> WebhookProfile:
        changed: WebhookProfile = replace(plain, **fields)
        monkeypatch.setitem(profiles.PROFILES, "plain", changed)
        return changed

    return change


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """Tasks, kept instead of queued."""
    made: list[str] = []

    def keep(task: str) -> bool:
        made.append(task)
        return True

    monkeypatch.setattr(notify, "enqueue", keep)
    return made


@pytest.fixture
def no_resolver(monkeypatch) -> None:
    """Every name leads to one public address."""
    public = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: public)


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory) -> Path:
    """An SQLite file with all tables, for tests to copy. One worker makes it for all."""
    folder: Path = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    file, unfinished = folder / "migrated.sqlite3", folder / "migrating.sqlite3"
    with (folder / "migrating.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            migrate(environment(DATABASE_URL=f"sqlite:///{unfinished}"))
            with closing(sqlite3.connect(unfinished)) as connection:
                connection.execute("pragma wal_checkpoint(truncate)")
            unfinished.rename(file)
    return file


@pytest.fixture
def free_port() -> int:
    return running.free_port()
