"""Words for tests that start `manage.py up`."""

import errno
import json
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import requests

from tests.running import (
    PATIENCE_S,
    ROOT,
    Running,
    environment,
    free_port,
    running,
    until,
)

READY = "Signpost is ready"
# With WORKERS=2: the supervisor, the web server, and seven of the cluster: its parent, main process,
# sentinel, two workers, monitor and pusher.
EVERYBODY = 9

# `manage.py` for each list of words, in one process: its imports cost more than a command that
# refuses. A line behind each command's output tells its exit status.
EACH = """
import json, sys, traceback
from manage import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["manage.py", *words]
    status = 0
    try:
        main()
    except SystemExit as error:
        status = error.code or 0
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        traceback.print_exc()
        status = 1
    print(f"exit status: {status}")
"""


# An environment unlike ours: no HOME, another time zone, no locale, and a proxy that reaches nothing.
STRANGE = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "no_proxy": "intranet.example"} | {
    name: "http://127.0.0.1:9"
    for lower in ("http_proxy", "https_proxy", "all_proxy")
    for name in (lower, lower.upper())
}


def variables(file: Path, **more: str) -> dict[str, str]:
    """Return an environment whose data is in this SQLite file alone."""
    return environment(DATABASE_URL=f"sqlite:///{file}", WORKERS="2") | more


def strange(**variables: str) -> dict[str, str]:
    """Return the environment of a newcomer, who has a proxy and no HOME."""
    own = environment(**STRANGE | variables)
    own.pop("HOME", None)
    return own


def start(data: Path, *options: str, **more: str):
    """Run `manage.py up`, on a free port unless the options name one.

    It gets its address: otherwise it starts itself again with the address of the port, and
    imports everything twice.
    """
    if "--port" not in options:
        options += ("--port", str(free_port()))
    port = options[options.index("--port") + 1]
    more = {"BASE_URL": f"http://127.0.0.1:{port}"} | more
    return running("manage.py", "up", *options, environment=variables(data, **more))


class Outcome(NamedTuple):
    status: int
    output: str


def outcomes(
    *commands: Sequence[str], environment: dict[str, str], cwd: Path = ROOT
) -> list[Outcome]:
    """Run `manage.py` with each of these arguments, one after another in one process."""
    done = subprocess.run(
        [sys.executable, "-u", "-c", EACH, json.dumps(commands)],
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    ).stdout
    *parts, rest = re.split(r"exit status: (\d+)\n", done)
    found = [
        Outcome(int(status), output)
        for output, status in zip(parts[::2], parts[1::2], strict=True)
    ]
    assert (len(found), rest) == (len(commands), ""), done
    return found


def rows(data: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all that is stored."""
    with closing(sqlite3.connect(data)) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "select name from sqlite_master where type = 'table'"
            )
        ]
        return {n: connection.execute(f"select * from {n}").fetchall() for n in names}  # noqa: S608


@contextmanager
def started(data: Path, *options: str, **more: str) -> Iterator["Instance"]:
    """Start an instance on a file of data, and wait until it is ready."""
    url = f"http://127.0.0.1:{free_port()}"
    with start(data, "--port", url.rpartition(":")[2], *options, **more) as process:
        process.wait_for(READY)
        yield Instance(process, data, url)


def wait_for_everybody(it: Running) -> None:
    it.wait_for(READY)
    until(lambda: len(it.family()) == EVERYBODY, "all processes")


def url_of(it: Running) -> str:
    it.wait_for(READY)
    found = re.search(r"(?<=ready at )http://\S+(?=/ )", it.output)
    assert found, it.output
    return found.group()


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=PATIENCE_S).status_code == 200
    except requests.ConnectionError:
        return False


def log_in(session: requests.Session, url: str, password: str) -> requests.Response:
    """Log the demo user in; return the page of the admin that follows."""
    login = f"{url}/accounts/login/"
    session.get(login, timeout=PATIENCE_S)
    form = {
        "login": "demo",
        "password": password,
        "csrfmiddlewaretoken": session.cookies["csrftoken"],
        "next": "/admin/",
    }
    return session.post(login, form, headers={"Referer": login}, timeout=PATIENCE_S)


def is_refused(host: str, port: int) -> bool:
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind) as client:
        return client.connect_ex((host, port)) == errno.ECONNREFUSED


@dataclass
class Instance:
    """A running instance, and commands on its database, in a strange environment."""

    process: Running
    data: Path
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def variables(self) -> dict[str, str]:
        return strange(DATABASE_URL=f"sqlite:///{self.data}", BASE_URL=self.url)

    def run(self, *arguments: str):
        """Run a command of `manage.py` beside the instance."""
        return running("manage.py", *arguments, environment=self.variables)

    def manage(self, *arguments: str) -> str:
        """Return the last line that a command printed."""
        with self.run(*arguments) as it:
            assert it.status() == 0, it.output
            last: str = it.lines[-1]
        return last.strip()

    @cached_property
    def token(self) -> str:
        """A personal token of the demo user."""
        return self.manage("create_personal_token", "demo", "--days", "30")

    @cached_property
    def password(self) -> str:
        """The password of the demo user, which the first start shows."""
        return self._shown(r"(?<=password: )\S+")

    @cached_property
    def gateway_key(self) -> str:
        return self.manage(
            "create_gateway_key", "--tenant", "acme", "--principal", "ada"
        )

    def _shown(self, pattern: str) -> str:
        found = re.search(pattern, self.process.output)
        assert found, self.process.output
        return found.group()
