"""kill -9 while 200 deliveries wait: after the next start all of them arrive."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest
import requests

from tests.running import ROOT, Running, environment, free_port, running, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

EVENTS = 200
# How many may be with the receiver at once: the endpoint's limit.
IN_FLIGHT = 4
PUBLISH = f"""
from django.contrib.auth.models import User
from webhooks_core.publishing import publish
owner = str(User.objects.get(username="demo").pk)
for number in range({EVENTS}):
    publish(profile="recording", owner=owner, event_type="summary.completed",
            data={{"audio_id": str(number)}})
"""


class Counting:
    """A receiver that is slow enough to be caught in the middle, and counts event ids."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        lock, seen = threading.Lock(), self.seen

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(0.15)
                with lock:
                    seen[orjson.loads(body)["id"]] += 1
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that is killed resets its connections."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def receiver():
    it = Counting()
    thread = threading.Thread(target=it.server.serve_forever, args=(0.05,))
    thread.start()
    yield it
    it.server.shutdown()
    it.server.server_close()
    thread.join()


def start(file: Path):
    port = str(free_port())
    variables = environment(DATABASE_URL=f"sqlite:///{file}")
    return running("manage.py", "up", "--port", port, environment=variables)


def subscribe(it: Running, url: str) -> None:
    [token] = re.findall(r"rec_pat_\w+", it.output)
    it.wait_for("/admin/")
    found = re.search(r"http://\S+?(?=/admin/)", it.output)
    assert found
    answer = requests.post(
        f"{found.group()}/v1/webhooks",
        json={"url": url, "events": ["summary.completed"]},
        headers={"Authorization": f"Bearer {token}"},
        timeout=20,
    )
    assert answer.status_code == 201


def publish(file: Path) -> None:
    subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", PUBLISH],
        env=environment(DATABASE_URL=f"sqlite:///{file}"),
        cwd=ROOT,
        check=True,
        timeout=60,
    )


@pytest.mark.parametrize("victim", ["the web server", "the cluster", "the whole tree"])
def test_none_of_200_waiting_deliveries_is_lost(tmp_path, receiver, victim):
    file = tmp_path / "kill.sqlite3"
    with start(file) as it:
        it.wait_for("Signpost is ready")
        subscribe(it, receiver.url)
        publish(file)
        until(lambda: len(receiver.seen) >= 20, "some deliveries")
        words = {"the web server": "web", "the cluster": "qcluster"}
        if victim in words:
            os.kill(it.child(words[victim]), signal.SIGKILL)
            assert it.status() == 1
        else:
            for pid in it.family():
                os.kill(pid, signal.SIGKILL)
        it.wait_until_nothing_is_left()
        assert len(receiver.seen) < EVENTS
    with start(file) as it:
        it.wait_for("Signpost is ready")
        until(lambda: len(receiver.seen) == EVENTS, "all events", seconds=90)
    twice = sum(count - 1 for count in receiver.seen.values())
    assert twice <= IN_FLIGHT
