"""Measure what authentication costs: requests/s with and without it, queries, CPU of a refresh.

The peer is the authentication of django-oauth-toolkit, with the same token on the same view.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import secrets
import statistics
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from wsgiref.util import setup_testing_defaults

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.handlers.wsgi import WSGIHandler
from django.core.management.base import BaseCommand
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from oauth2_provider.contrib.rest_framework import OAuth2Authentication
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from benchmarks import login_flood, results
from benchmarks.catalog.servers import BENCHMARKS, prepare, run
from recording.accounts import personal_tokens
from recording.oauth import clients
from recording.oauth.authorization import Authorization
from recording.oauth.models import Application, AuthMethod
from recording.oauth.parameters import FORM, Parameters
from recording.viewsets import SubscriptionViewSet
from webhooks_core.management.argument_types import integer_between

REDIRECT = "http://127.0.0.1/"
VERIFIER = "v" * 64
ROUNDS = 9
TOOLKIT = "OAuth token, by django-oauth-toolkit"
TARGET_SHARE, TARGET_CPU_MS = 0.6, 10.0


class BenchError(Exception):
    """A request of the benchmark was not answered as it should be."""


class Open(BaseAuthentication):
    """Authenticates every request as one user, without a query."""

    user: AbstractUser

    def authenticate(self, request: Request) -> tuple[AbstractUser, str]:
        return self.user, "open"


class Bench:
    """One account with a token of each kind, called through the whole WSGI stack."""

    def __init__(self) -> None:
        self.handler = WSGIHandler()
        Open.user = get_user_model().objects.create_user(
            f"bench-{secrets.token_hex(8)}"
        )
        self.application, self.secret = clients.register(
            metadata=clients.Metadata((REDIRECT,), "bench", AuthMethod.BASIC),
            address="",
        )
        pair = self.token(
            grant_type="authorization_code", **self._code(self.application)
        )
        self.refresh_token = pair["refresh_token"]
        self.bearers = {
            "OAuth token": pair["access_token"],
            "personal token": personal_tokens.create(user=Open.user, days=1).text,
        }

    def clear(self) -> None:
        """Delete the rows of the benchmark."""
        self.application.delete()
        Open.user.delete()

    @staticmethod
    def _code(application: Application) -> dict[str, str]:
        digest = hashlib.sha256(VERIFIER.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": application.client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        address = Authorization(application, Parameters(asked)).allow(Open.user)
        (code,) = parse_qs(urlsplit(address).query)["code"]
        return {"code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER}

    def token(self, **form: str) -> dict[str, Any]:
        """Call the token endpoint as a confidential client."""
        pair = f"{self.application.client_id}:{self.secret}".encode()
        basic = "Basic " + base64.b64encode(pair).decode()
        answer: dict[str, Any] = json.loads(
            self.call("POST", "/oauth/token", basic, urlencode(form).encode())
        )
        return answer

    def refresh(self) -> None:
        """Rotate the refresh token once."""
        pair = self.token(grant_type="refresh_token", refresh_token=self.refresh_token)
        self.refresh_token = pair["refresh_token"]

    def get(self, bearer: str = "") -> None:
        """List the account's webhooks."""
        self.call("GET", "/v1/webhooks", f"Bearer {bearer}" if bearer else "")

    def call(
        self, method: str, path: str, authorization: str = "", body: bytes = b""
    ) -> bytes:
        """Send one request; raises BenchError unless the answer is 200."""
        origin = urlsplit(settings.BASE_URL)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_HOST": origin.netloc,
            "wsgi.url_scheme": origin.scheme,
            "wsgi.input": BytesIO(body),
            "CONTENT_LENGTH": str(len(body)),
        }
        if body:
            environ["CONTENT_TYPE"] = FORM
        if authorization:
            environ["HTTP_AUTHORIZATION"] = authorization
        setup_testing_defaults(environ)
        response: Any = self.handler(environ, ignore_start)
        content = b"".join(response)
        response.close()
        if response.status_code != 200:
            raise BenchError(f"{method} {path}: {response.status_code} {content!r}")
        return content


def ignore_start(status: str, headers: Any, exc_info: Any = None, /) -> Any:
    """Be the server's side of WSGI: the response object has it all."""


def rate(call: Callable[[], None], times: int) -> float:
    """Return calls per second."""
    started = time.perf_counter()
    for _ in range(times):
        call()
    return times / (time.perf_counter() - started)


def queries(call: Callable[[], None]) -> int:
    """Return how many queries a call makes."""
    with CaptureQueriesContext(connection) as captured:
        call()
    return len(captured)


def cpu_ms(call: Callable[[], None], times: int) -> float:
    """Return the processor time of a call in milliseconds."""
    started = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - started) * 1000 / times


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--requests",
            type=integer_between(1, 1_000_000),
            default=200,
            help="per round",
        )
        parser.add_argument(
            "--flood",
            action="store_true",
            help="measure instead what a flood of logins costs other requests",
        )
        parser.add_argument("--database-url", help="an empty database to use up")
        parser.add_argument("--ask", action="store_true", help="the default database")
        results.add_option(parser)

    def handle(self, *args: Any, requests: int, **options: Any) -> None:
        if options["flood"]:
            self.stdout.write(login_flood.run())
        elif options["ask"]:
            self.ask(requests, save=options["save"])
        else:
            self.prepare(requests, options)

    def prepare(self, requests: int, options: dict[str, Any]) -> None:
        """Measure in another process, on a database of its own."""
        with tempfile.TemporaryDirectory() as folder:
            database = options["database_url"] or f"sqlite:///{folder}/bench.sqlite3"
            prepare(database)
            given = [f"--requests={requests}", *["--save"] * options["save"]]
            run(*BENCHMARKS, "auth", "--ask", *given, database=database)

    @override_settings(OAUTH_RATES={"token": ""})
    def ask(self, requests: int, *, save: bool) -> None:
        logging.disable(logging.INFO)
        bench = Bench()
        try:
            rows = self.measure(bench, requests)
        finally:
            bench.clear()
            logging.disable(logging.NOTSET)
        if save:
            results.save(
                "rest",
                {
                    "peers": {k: v for k, v in rows.items() if k != "none"},
                    "limits": {k: v for k, v in rows.items() if k != TOOLKIT},
                },
                versions=results.python_versions("django-oauth-toolkit"),
            )

    def measure(self, bench: Bench, requests: int) -> dict[str, Any]:
        """Print one line per kind of token, and one for the token endpoint."""
        checked = SubscriptionViewSet.authentication_classes
        kinds = {
            "none": ((Open,), ""),
            **{name: (checked, bearer) for name, bearer in bench.bearers.items()},
            TOOLKIT: ((OAuth2Authentication,), bench.bearers["OAuth token"]),
        }
        rates: dict[str, list[float]] = {name: [] for name in kinds}
        count = {}
        try:
            # Each round measures all kinds, so that a busy machine disturbs them alike.
            for _ in range(ROUNDS):
                for name, (classes, bearer) in kinds.items():
                    SubscriptionViewSet.authentication_classes = classes
                    call = partial(bench.get, bearer)
                    rates[name].append(rate(call, requests))
                    count[name] = queries(call)
        finally:
            SubscriptionViewSet.authentication_classes = checked
        base = statistics.median(rates["none"])
        rows = {}
        for name, measured in rates.items():
            per_second = statistics.median(measured)
            rows[name] = {
                "requests/s": per_second,
                "of none": per_second / base,
                "more queries": count[name] - count["none"],
            }
            self.stdout.write(
                f"GET /v1/webhooks, {name + ':':<33}{per_second:7.0f} requests/s"
                f" {per_second / base:5.2f} of none"
                f" {count[name] - count['none']:+d} queries"
            )
        refresh = cpu_ms(bench.refresh, requests)
        rows["OAuth token"]["CPU of a refresh, ms"] = refresh
        self.stdout.write(
            f"POST /oauth/token, refresh, client_secret_basic: {refresh:.2f} ms of CPU"
            f" (limit {TARGET_CPU_MS:.0f}), {queries(bench.refresh)} queries"
        )
        self.stdout.write(f"Wanted: at least {TARGET_SHARE} of none, one query each.")
        return rows
