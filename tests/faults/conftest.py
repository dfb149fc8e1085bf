"""Sites that tests share, and the table of what the faults cost."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.ledger import Ledger
from tests.faults.ledger import open_ledger as open_unchecked
from tests.faults.servers import Disk, Postgres, Redis
from tests.faults.site import Site
from tests.running import environment, migrate, until
from tests.tools import require

# They read /proc.
collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]

FILE = "site.sqlite3"
COLUMNS = ("published", "deliveries", "delivered", "in flight", "duplicated", "lost")


def on_sqlite(folder: Path) -> Site:
    return Site("SQLite, ORM broker", folder, DATABASE_URL=f"sqlite:///{folder / FILE}")


@pytest.fixture(scope="session")
def sqlite_site(migrated_file, tmp_path_factory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("sqlite")
    shutil.copy(migrated_file, folder / FILE)
    with on_sqlite(folder).running() as site:
        yield site


@pytest.fixture
def timed_site(sqlite_site) -> Iterator[Site]:
    site = sqlite_site
    yield site
    # The resident dispatcher would keep a lease from another time, which would expire in
    # the next test.
    site.stop()
    site.move_clock(0)
    site.watcher.call("sweep_soon")


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Disk]:
    """A disk that a test can fill; a tmpfs, which only root may mount."""
    require("mount", "umount")
    with Disk(tmp_path).mounted() as disk:
        yield disk


@pytest.fixture
def small_site(migrated_file, small_disk) -> Iterator[Site]:
    shutil.copy(migrated_file, small_disk.folder / FILE)
    with on_sqlite(small_disk.folder).running() as site:
        yield site


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    require("redis-server")
    with Redis().running() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_postgres(tmp_path_factory) -> Path:
    """The files of a PostgreSQL with all tables, for tests to copy. One worker makes them for all."""
    folder: Path = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    files, unfinished = folder / "postgres", folder / "making-postgres" / "data"
    try:
        unfinished.parent.mkdir()
    except FileExistsError:
        until(files.exists, "another worker's PostgreSQL")
        return files
    with Postgres().running() as server:
        migrate(environment(DATABASE_URL=server.url))
        server.stop()
        server.copy_to(unfinished)
    return unfinished.rename(files)


@pytest.fixture(scope="session")
def postgres_server(request) -> Iterator[Postgres]:
    if Postgres.programs() is None:
        require("initdb")
    if os.getuid() == 0:
        require("runuser", "chown")
    files = request.getfixturevalue("migrated_postgres")
    with Postgres(copy_of=files).running() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_site(tmp_path_factory, postgres_server, redis_server) -> Iterator[Site]:
    site = Site(
        "PostgreSQL, Redis",
        tmp_path_factory.mktemp("postgres"),
        DATABASE_URL=postgres_server.url,
        REDIS_URL=redis_server.url,
    )
    with site.running():
        yield site


@pytest.fixture(params=["sqlite_site", "postgres_site"], ids=["sqlite", "postgres"])
def site(request) -> Site:
    site: Site = request.getfixturevalue(request.param)
    return site


Opening = Callable[..., AbstractContextManager[Ledger]]


@pytest.fixture
def open_ledger(record_property) -> Opening:
    """Open a ledger that is checked, and shown in the table, when its block ends."""

    @contextmanager
    def opened(*arguments: Any, **options: Any) -> Iterator[Ledger]:
        with open_unchecked(*arguments, **options) as ledger:
            yield ledger
            record_property("fault", ledger.check())

    return opened


def pytest_terminal_summary(terminalreporter) -> None:
    rows = [
        value
        for report in terminalreporter.stats.get("passed", [])
        for name, value in report.user_properties
        if name == "fault"
    ]
    if not rows:
        return
    write = terminalreporter.write_line
    terminalreporter.section("what the faults cost")
    write("| fault | on |" + "".join(f" {name} |" for name in COLUMNS))
    write("|---|---|" + "---:|" * len(COLUMNS))
    for row in sorted(rows, key=lambda row: (row["on"], row["fault"])):
        numbers = "".join(f" {row[name]} |" for name in COLUMNS)
        write(f"| {row['fault']} | {row['on']} |{numbers}")
