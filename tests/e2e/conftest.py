import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.documented import assert_response_documented
from tests.e2e.starting import READY, Instance, strange
from tests.running import free_port, running

# They read /proc.
collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


@pytest.fixture(autouse=True)
def documented(monkeypatch) -> None:
    """Compare each response to requests with the OpenAPI document."""
    send = requests.Session.send

    def compared(session: Any, request: Any, **options: Any) -> requests.Response:
        response = send(session, request, **options)
        if not options.get("stream"):
            assert_response_documented(response)
        return response

    monkeypatch.setattr(requests.Session, "send", compared)


@pytest.fixture
def data(migrated_file, tmp_path) -> Path:
    """A database with all tables and without rows of accounts or products."""
    return Path(shutil.copy(migrated_file, tmp_path / "e2e.sqlite3"))


@pytest.fixture(scope="package")
def instance(tmp_path_factory, migrated_file) -> Iterator[Instance]:
    """An instance as `make run` starts it, with demo data, for all tests of this package.

    Its environment is STRANGE.

    A test removes what it subscribes, and does not end a process.
    """
    data = tmp_path_factory.mktemp("instance") / "instance.sqlite3"
    shutil.copy(migrated_file, data)
    url = f"http://127.0.0.1:{free_port()}"
    arguments = ("manage.py", "up", "--port", url.rpartition(":")[2])
    variables = strange(DATABASE_URL=f"sqlite:///{data}", BASE_URL=url)
    with running(*arguments, environment=variables) as process:
        process.wait_for(READY)
        yield Instance(process, data, url)
