"""The order of docs/guides/upgrade.md, under load: no request and no event is lost."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from uuid import uuid4

import requests
from django.conf import settings

from tests.receiver import receiver
from tests.running import Running, environment, free_port, running, until

# Of each client between its requests: without one, the load takes what the processes need to start.
PAUSE_S = 0.1
IDENTITY = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}


class Site:
    """Two web servers and a worker on one database, and a balancer's choice between them."""

    def __init__(self, stack: ExitStack, variables: dict[str, str]) -> None:
        self.stack, self.variables = stack, variables
        self.ports = [free_port(), free_port()]
        self.servers = [self.web(port) for port in self.ports]
        self.worker = self.start("qcluster", "--skip-checks")
        for server, port in zip(self.servers, self.ports, strict=True):
            wait_until_ready(server, port)
        self.worker.wait_for("task cluster starts")
        [line] = [each for each in self.worker.lines if "task cluster starts" in each]
        address = "address=http://127.0.0.1:8000"
        for word in (f"version={settings.VERSION}", "environment=local", address):
            assert word in line

    def start(self, *arguments: str) -> Running:
        process = running("manage.py", *arguments, environment=self.variables)
        return self.stack.enter_context(process)

    def web(self, port: int) -> Running:
        return self.start("web", "--port", str(port))

    def post(self, path: str, body: object) -> requests.Response:
        """Ask a server; if its port is closed, the other one. Nothing else is repeated."""
        for port in self.ports:
            try:
                url = f"http://127.0.0.1:{port}{path}"
                return requests.post(url, json=body, headers=IDENTITY, timeout=60)
            except requests.ConnectionError as error:
                if "Connection refused" not in str(error):
                    raise
        raise AssertionError("both ports are closed")

    def upgrade(self) -> None:
        """Replace the worker and then the web servers, as the guide says."""
        assert self.worker.end() == 0
        self.start("migrate").wait_for("No migrations to apply")
        self.worker = self.start("qcluster", "--skip-checks")
        self.worker.wait_for("task cluster starts")
        for index, port in enumerate(self.ports):
            assert self.servers[index].end() == 0
            assert "Traceback" not in self.servers[index].output
            self.servers[index] = self.web(port)
            wait_until_ready(self.servers[index], port)

    def interrupt(self) -> None:
        """End the web servers as Ctrl-C does."""
        for server in self.servers:
            assert server.end(signal.SIGINT) == 0
            assert "Traceback" not in server.output


def wait_until_ready(server: Running, port: int) -> None:
    server.wait_for("web server starts")
    ready = f"http://127.0.0.1:{port}/readyz"
    until(lambda: requests.get(ready, timeout=60).ok, "readiness")


def test_an_upgrade_under_load_loses_no_request_and_no_event(data):
    stopped = threading.Event()
    variables = environment(DATABASE_URL=f"sqlite:///{data}", WORKERS="2")
    with receiver(204) as server, ExitStack() as stack:
        site = Site(stack, variables)
        hook = {"url": server.url, "event_types": ["ingest.completed"]}
        assert site.post("/v1/webhooks/subscriptions", hook).status_code == 201

        def ingest_until_stopped() -> list[str]:
            documents = []
            while not stopped.is_set():
                response = site.post("/v1/ingest", {"text": uuid4().hex})
                assert response.status_code == 201, response.text
                documents.append(response.json()["document_id"])
                stopped.wait(PAUSE_S)
            return documents

        with ThreadPoolExecutor() as pool:
            clients = [pool.submit(ingest_until_stopped) for _ in range(4)]
            try:
                site.upgrade()
            finally:
                stopped.set()
            documents = {name for client in clients for name in client.result()}

        def missing() -> set[str]:
            bodies = b" ".join(request.body for request in server.requests).decode()
            return {name for name in documents if name not in bodies}

        until(lambda: not missing(), "every event")
        assert len(documents) > 50
        site.interrupt()
