from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import requests

from tests.e2e.starting import READY, rows, start, variables
from tests.running import (
    ROOT,
    Running,
    command_line,
    environment,
    free_port,
    running,
    until,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
# The supervisor, the web server, the cluster, its sentinel, worker, monitor and pusher.
EVERYBODY = 7


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A database that an instance has been started on before."""
    file: Path = tmp_path_factory.mktemp("up") / "template.sqlite3"
    port = str(free_port())
    arguments = ("manage.py", "up", "--port", port, "--no-worker")
    with running(*arguments, environment=variables(file)) as it:
        it.wait_for(READY)
        assert it.end() == 0
    return file


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "up.sqlite3"))


def wait_for_everybody(it: Running) -> None:
    it.wait_for(READY)
    until(lambda: len(it.family()) == EVERYBODY, "all processes")


def url_of(it: Running) -> str:
    it.wait_for("/admin/")
    found = re.search(r"http://\S+?(?=/admin/)", it.output)
    assert found, it.output
    return found.group()


# ── Start and stop ──────────────────────────────────────────────────────────────────


def test_the_first_start_makes_the_demo_user_and_shows_the_password_only_once(
    tmp_path,
):
    data = tmp_path / "new.sqlite3"
    with start(data, "--no-worker") as it:
        it.wait_for(READY)
        [password] = re.findall(r"Demo user: demo   password: (\S+)", it.output)
        session = requests.Session()
        login = url_of(it) + "/admin/login/"
        session.get(login)
        answer = session.post(
            login,
            {
                "username": "demo",
                "password": password,
                "csrfmiddlewaretoken": session.cookies["csrftoken"],
                "next": "/admin/",
            },
            headers={"Referer": login},
        )
        assert (answer.status_code, answer.url) == (200, url_of(it) + "/admin/")
        assert it.end() == 0
        assert it.output.count(password) == 1
    assert not [
        file for file in tmp_path.iterdir() if password.encode() in file.read_bytes()
    ]
    with start(data, "--no-worker") as it:
        it.wait_for(READY)
        assert "password" not in it.output
        assert it.end() == 0


def test_a_second_start_changes_nothing(data):
    before = rows(data)
    with start(data, "--no-worker") as it:
        it.wait_for(READY)
        assert it.end() == 0
    assert rows(data) == before


def test_no_demo_leaves_an_empty_database_empty_and_demo_fills_it_later(tmp_path):
    data = tmp_path / "empty.sqlite3"
    with start(data, "--no-demo", "--no-worker") as it:
        it.wait_for(READY)
        assert it.end() == 0
    assert rows(data)["auth_user"] == []
    with closing(sqlite3.connect(data)) as connection, connection:
        connection.execute(
            "insert into auth_user (id, password, is_superuser, username, last_name, email,"
            " is_staff, is_active, date_joined, first_name)"
            " values (1, '', 0, 'somebody', '', '', 0, 1, '2030-01-01', '')"
        )
    with start(data, "--no-worker") as it:
        it.wait_for(READY)
        assert it.end() == 0
    assert len(rows(data)["auth_user"]) == 1
    with start(data, "--demo", "--no-worker") as it:
        it.wait_for(READY)
        assert it.end() == 0
        assert "Demo user: demo" in it.output
    assert len(rows(data)["auth_user"]) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_leaves_no_process_behind_and_the_port_free(data, number):
    port = str(free_port())
    for _ in range(2):
        with start(data, "--port", port) as it:
            wait_for_everybody(it)
            assert it.end(number) == 0
            assert it.family() == []
            assert "Traceback" not in it.output


def test_a_request_in_progress_is_answered_before_the_end(data):
    with start(data, "--no-worker") as it:
        it.wait_for(READY)
        host, port = url_of(it).removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            head = f"POST /admin/ HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 5\r\n\r\n"
            client.sendall(head.encode())
            client.sendall(b"12")
            os.kill(it.pid, signal.SIGTERM)
            it.wait_for("Stopping")
            client.sendall(b"345")
            assert client.recv(1000).startswith(b"HTTP/1.1 ")
        assert it.status() == 0


def test_a_connection_that_is_older_than_the_stop_signal_gets_its_response(data):
    with start(data, "--no-worker") as it:
        it.wait_for(READY)
        host, port = url_of(it).removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            os.kill(it.pid, signal.SIGTERM)
            until(lambda: is_refused(host, int(port)), "the end of listening")
            client.sendall(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        assert it.status() == 0


def test_on_a_stop_signal_nobody_is_let_in_and_a_stream_goes_on_to_its_end(
    data, tmp_path
):
    config = tmp_path / "gateway.yaml"
    model = {"name": "slow", "upstream": "echo", "model": "echo-500ms"}
    config.write_text(json.dumps({"models": [model]}))
    with start(data, GATEWAY_CONFIG=str(config)) as it:
        wait_for_everybody(it)
        host, port = url_of(it).removeprefix("http://").split(":")
        said = {"role": "user", "content": "one two three four five six seven eight"}
        with requests.post(
            f"{url_of(it)}/v2/chat/completions",
            json={"model": "slow", "stream": True, "messages": [said]},
            headers={"X-Tenant-Id": "acme", "X-Principal-Id": "ada"},
            stream=True,
            timeout=60,
        ) as answer:
            parts = answer.iter_content(None)
            body = next(parts)
            os.kill(it.pid, signal.SIGTERM)
            until(lambda: is_refused(host, int(port)), "the end of listening")
            assert it.child("manage.py web") in it.children()
            body += b"".join(parts)
        assert b'"finish_reason":"stop"' in body
        assert b"eight" in body
        assert it.status() == 0


def is_refused(host: str, port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((host, port)) == errno.ECONNREFUSED


def test_ctrl_c_in_a_terminal_is_heard_once(data):
    with start(data) as it:
        wait_for_everybody(it)
        os.killpg(it.pid, signal.SIGINT)
        assert it.status() == 0
        assert it.output.count("Stopping") == 1
        assert it.family() == []


# ── Deaths ──────────────────────────────────────────────────────────────────────────


def test_no_process_outlives_a_killed_supervisor(data):
    with start(data) as it:
        wait_for_everybody(it)
        os.kill(it.pid, signal.SIGKILL)
        it.wait_until_nothing_is_left()
        assert it.status() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("word", "name"), [("web", "the web server"), ("qcluster", "the task cluster")]
)
def test_a_child_that_is_killed_ends_everything_with_a_line_that_names_it(
    data, word, name
):
    with start(data) as it:
        wait_for_everybody(it)
        os.kill(it.child(word), signal.SIGKILL)
        assert it.status() == 1
        assert f"{name} ended unexpectedly (killed by SIGKILL)" in it.output
        it.wait_until_nothing_is_left()


def test_a_killed_sentinel_does_not_end_the_instance(data):
    with start(data) as it:
        wait_for_everybody(it)
        before = it.family()
        [sentinel] = it.children(it.child("qcluster"))
        os.kill(sentinel, signal.SIGKILL)
        until(
            lambda: len(it.family()) == EVERYBODY and it.family() != before,
            "a new sentinel with its children",
        )
        assert answers(url_of(it) + "/admin/login/")
        assert it.end() == 0
        assert it.family() == []


# ── Where it runs ───────────────────────────────────────────────────────────────────


def test_ipv6_and_closed_standard_input(data):
    port = str(free_port("::1"))
    arguments = ("manage.py", "up", "--host", "::1", "--port", port)
    with running(*arguments, environment=variables(data), closed_stdin=True) as it:
        wait_for_everybody(it)
        assert url_of(it) == f"http://[::1]:{port}"
        assert answers(url_of(it) + "/admin/login/")
        assert it.end() == 0


def test_a_folder_with_a_space_in_its_name(tmp_path):
    folder = tmp_path / "my folder"
    folder.mkdir()
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ("config", "catalog", "recording", "gateway", "webhooks_core"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copytree(ROOT / "templates", folder / "templates")
    arguments = ("manage.py", "up", "--port", str(free_port()))
    with running(*arguments, environment=environment(WORKERS="1"), cwd=folder) as it:
        wait_for_everybody(it)
        assert it.end() == 0
    assert (folder / "var" / "signpost.sqlite3").exists()


def test_a_base_url_that_was_given_stays(data):
    port = str(free_port())
    given = "http://localhost:" + port
    with start(data, "--port", port, "--no-worker", BASE_URL=given) as it:
        it.wait_for(READY)
        assert url_of(it) == given
        assert it.end() == 0


def test_only_the_worker_or_only_the_web_server(data):
    with start(data, "--no-web") as it:
        it.wait_for(READY)
        assert ["qcluster" in command_line(pid) for pid in it.children()] == [True]
        assert it.end() == 0
    with start(data, "--no-worker") as it:
        it.wait_for(READY)
        assert ["web" in command_line(pid) for pid in it.children()] == [True]
        assert it.end() == 0


def test_output_that_nobody_reads_any_more_ends_nothing(data):
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", str(port := free_port())],
        env=variables(data),
        cwd=ROOT,
        stdout=writer,
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    os.close(reader)
    try:
        url = f"http://127.0.0.1:{port}/admin/login/"
        until(lambda: answers(url), "an answer")
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=20).status_code == 200
    except requests.ConnectionError:
        return False


def test_the_web_server_runs_alone(data):
    port = str(free_port())
    arguments = ("manage.py", "web", "--port", port)
    for number in (signal.SIGTERM, signal.SIGINT):
        with running(*arguments, environment=variables(data)) as it:
            until(lambda: answers(f"http://127.0.0.1:{port}/admin/login/"), "an answer")
            assert it.end(number) == 0
            assert "Traceback" not in it.output
