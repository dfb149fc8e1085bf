import os
import re
import shutil
import signal
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import requests

from tests.e2e.starting import (
    EVERYBODY,
    READY,
    answers,
    log_in,
    rows,
    start,
    url_of,
    variables,
    wait_for_everybody,
)
from tests.running import (
    ROOT,
    command_line,
    environment,
    free_port,
    running,
    until,
)
from tests.tools import needs_ipv6


def copy_of_the_project(folder: Path) -> Path:
    folder.mkdir()
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ("config", "catalog", "recording", "gateway", "webhooks_core"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copytree(ROOT / "templates", folder / "templates")
    return folder


# ── First and later starts ──────────────────────────────────────────────────────────


def test_the_first_start_makes_the_demo_user_and_a_second_one_changes_nothing(tmp_path):
    """In a folder with a space in its name, with the database of the default settings."""
    folder = copy_of_the_project(tmp_path / "my folder")
    data = folder / "var" / "signpost.sqlite3"
    port = free_port()
    arguments = ("manage.py", "up", "--port", str(port))
    own = environment(WORKERS="2")
    with running(*arguments, environment=own, cwd=folder) as it:
        wait_for_everybody(it)
        [password] = re.findall(r"User: demo   password: (\S+)", it.output)
        answer = log_in(requests.Session(), url_of(it), password)
        assert (answer.status_code, answer.url) == (200, url_of(it) + "/admin/")
        assert it.end(signal.SIGHUP) == 0
        assert it.family() == []
        assert it.output.count(password) == 1
        assert "endpoint changed" not in it.output  # the demo's are no news
        assert "Traceback" not in it.output
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert data in files
    assert not [file for file in files if password.encode() in file.read_bytes()]
    before = rows(data)
    # The port is free. A base URL that was given stays.
    own["BASE_URL"] = f"http://localhost:{port}"
    with running(*arguments, "--no-worker", environment=own, cwd=folder) as it:
        it.wait_for(READY)
        assert "manage.py changepassword demo" in it.output
        assert "shown this once" not in it.output
        assert ["web" in command_line(pid) for pid in it.children()] == [True]
        assert url_of(it) == own["BASE_URL"]
        assert it.end() == 0
    assert rows(data) == before


def test_no_demo_leaves_an_empty_database_empty_and_so_does_a_user(data):
    """Without a web server: the only child is the task cluster."""
    with start(data, "--no-demo", "--no-web") as it:
        it.wait_for(READY)
        assert ["qcluster" in command_line(pid) for pid in it.children()] == [True]
        assert it.end() == 0
    assert rows(data)["auth_user"] == []
    with closing(sqlite3.connect(data)) as connection, connection:
        connection.execute(
            "insert into auth_user (id, password, is_superuser, username, last_name, email,"
            " is_staff, is_active, date_joined, first_name)"
            " values (1, '', 0, 'somebody', '', '', 0, 1, '2030-01-01', '')"
        )
    with start(data, "--no-web") as it:
        it.wait_for(READY)
        assert it.end() == 0
        assert "User: demo" not in it.output
    assert len(rows(data)["auth_user"]) == 1


# ── Start and stop ──────────────────────────────────────────────────────────────────
# tests/e2e/test_faults.py stops an instance that streams and delivers.


@needs_ipv6
def test_on_ipv6_with_a_closed_standard_input_it_serves_until_ctrl_c_is_heard_once(
    data,
):
    """A killed process of the cluster does not end it, and the stop answers a request in progress."""
    port = free_port("::1")
    arguments = ("manage.py", "up", "--host", "::1", "--port", str(port), "--no-demo")
    with running(*arguments, environment=variables(data), closed_stdin=True) as it:
        wait_for_everybody(it)
        assert url_of(it) == f"http://[::1]:{port}"
        assert answers(url_of(it) + "/admin/login/")

        before = it.family()
        [main] = it.children(it.child("qcluster"))
        os.kill(main, signal.SIGKILL)
        until(
            lambda: len(it.family()) == EVERYBODY and it.family() != before,
            "new processes of the cluster",
        )
        assert answers(url_of(it) + "/admin/login/")

        with socket.create_connection(("::1", port)) as client:
            head = f"POST /admin/ HTTP/1.1\r\nHost: [::1]:{port}\r\nContent-Length: 5\r\n\r\n"
            client.sendall(head.encode() + b"12")
            # A terminal sends the signal to its whole foreground group: the supervisor alone.
            group = [pid for pid in it.family() if os.getpgid(pid) == it.pid]
            assert group == [it.pid]
            os.killpg(it.pid, signal.SIGINT)
            it.wait_for("Stopping")
            client.sendall(b"345")
            assert client.recv(1000).startswith(b"HTTP/1.1 ")
        assert it.status() == 0
        assert it.output.count("Stopping") == 1
        assert "Traceback" not in it.output
        assert it.family() == []
    socket.create_server(("::1", port), family=socket.AF_INET6).close()
