"""Web servers that the tests of a file share."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.sites import local
from tests.deploy_check import PRODUCTION
from tests.running import Running, environment, web


@pytest.fixture(scope="module")
def folder(tmp_path_factory, migrated_file) -> Path:
    folder: Path = tmp_path_factory.mktemp("front")
    (folder / "gateway.yaml").write_text(
        json.dumps({"models": [{"name": "echo", "upstream": "echo", "model": "echo"}]})
    )
    shutil.copy(migrated_file, folder / "db.sqlite3")
    return folder


@pytest.fixture(scope="module")
def site(folder) -> Iterator[tuple[Running, str]]:
    with web(local(folder)) as process:
        yield process


@pytest.fixture(scope="module")
def url(site) -> str:
    return str(site[1])


@pytest.fixture(scope="module")
def production(folder) -> Iterator[tuple[Running, str]]:
    variables = PRODUCTION | {
        "ALLOWED_HOSTS": "signpost.example,.wild.example",
        "DATABASE_URL": f"sqlite:///{folder / 'db.sqlite3'}",
        "REDIS_URL": "",
        "GATEWAY_CONFIG": str(folder / "gateway.yaml"),
        "GATEWAY_TRUSTED_PROXIES": "127.0.0.1/32",
        "TRUST_X_FORWARDED_PROTO": "true",
    }
    with web(environment(**variables)) as process:
        yield process
