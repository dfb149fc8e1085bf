"""In production: https, cookies, and a proxy in front that deletes identity headers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.config.sites import CHAT, answers, ask, error_text
from tests.deploy_check import PRODUCTION
from tests.gateway.chat.harness import IDENTITY
from tests.running import ROOT, environment, free_port, until
from tests.tools import needs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

OPENAI = ("error", "message")
OURS = {"Host": "signpost.example", **IDENTITY}
HTTPS = {**OURS, "X-Forwarded-Proto": "https"}


def test_in_production_chat_redirects_to_https_as_everything_else_does(production):
    url = production[1]
    expected = ask(url, "/v1/usage?a=b", headers=OURS)
    for path in ("/v1/models", "/v2/chat/completions", "/v1/chat/completions"):
        for method in ("GET", "POST"):
            answer = ask(url, f"{path}?a=b", method, json=CHAT, headers=OURS)
            assert answer.status_code == expected.status_code == 301
            assert answer.headers["Location"] == f"https://signpost.example{path}?a=b"
            assert answer.headers.keys() == expected.headers.keys()
    evil = ask(url, "/v1/models", headers={**HTTPS, "Host": "evil.example"})
    assert (evil.status_code, error_text(evil, OPENAI)) == (
        400,
        "The request is not valid.",
    )


@pytest.mark.parametrize("proto", ["https", "https, http", "http", "http, https", ""])
def test_chat_trusts_the_same_scheme_as_django(production, proto):
    headers = {**OURS, "X-Forwarded-Proto": proto}
    there, chat = (
        ask(production[1], path, headers=headers).status_code
        for path in ("/v1/usage", "/v1/models")
    )
    assert (there == 301) == (chat == 301) == (not proto.startswith("https"))


def test_in_production_chat_has_the_security_headers_of_everything_else(production):
    url = production[1]
    expected = ask(url, "/v1/usage", headers=HTTPS).headers
    assert expected["Strict-Transport-Security"] == "max-age=31536000"
    for answer in (
        ask(url, "/v1/models", headers=HTTPS),
        ask(url, "/v2/chat/completions", "POST", json=CHAT, headers=HTTPS),
        ask(url, "/v2/chat/completions", "POST", json=CHAT | {"stream": True}, headers=HTTPS),
        ask(url, "/v2/chat/completions", headers=HTTPS),
    ):  # fmt: skip
        for name in ("Strict-Transport-Security", "X-Content-Type-Options"):
            assert answer.headers[name] == expected[name]


COOKIES = """
import json, os
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
from config import settings as s
names = "SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", \\
    "CSRF_COOKIE_SECURE", "SECURE_HSTS_SECONDS", "SECURE_HSTS_INCLUDE_SUBDOMAINS", \\
    "SECURE_HSTS_PRELOAD"
from config.cookies import PrefixedCookieStorage
print(json.dumps([PrefixedCookieStorage.cookie_name, *(getattr(s, name) for name in names)]))
"""


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ["messages", "sessionid", "csrftoken", False, False, 0, False, False]),
        (
            PRODUCTION,
            [
                "__Host-messages",
                "__Host-sessionid",
                "__Host-csrftoken",
                True,
                True,
                31_536_000,
                False,
                False,
            ],
        ),
        (
            PRODUCTION
            | {
                "SECURE_HSTS_SECONDS": "60",
                "SECURE_HSTS_INCLUDE_SUBDOMAINS": "true",
                "SECURE_HSTS_PRELOAD": "true",
            },
            [
                "__Host-messages",
                "__Host-sessionid",
                "__Host-csrftoken",
                True,
                True,
                60,
                True,
                True,
            ],
        ),
    ],
)
def test_cookies_and_hsts_are_strict_in_production_alone(variables, expected):
    run = subprocess.run(
        [sys.executable, "-c", COOKIES],
        env=environment(**variables),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == expected


HAPROXY = """
global
    maxconn 100
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend front
    bind 127.0.0.1:{port}
    http-request del-header X-Tenant-Id
    http-request del-header X-Principal-Id
    default_backend back
backend back
    server web {server}
"""


@pytest.fixture
def haproxy(url, tmp_path) -> Iterator[str]:
    port = free_port()
    file = tmp_path / "haproxy.cfg"
    file.write_text(HAPROXY.format(port=port, server=url.removeprefix("http://")))
    process = subprocess.Popen(["haproxy", "-f", str(file), "-db"])
    try:
        until(lambda: answers(port), "HAProxy")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@needs("haproxy")
@pytest.mark.parametrize(
    "path", ["/v1/ingest", "/v1/webhooks/subscriptions", "/v2/chat/completions"]
)
@pytest.mark.parametrize("pause", [False, True])
def test_trailers_through_a_proxy_that_deletes_identity_headers_give_no_identity(
    haproxy, path, pause
):
    host, port = haproxy.removeprefix("http://").split(":")
    body = json.dumps(CHAT | {"text": "one", "url": "http://127.0.0.1:9/"}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    )
    head += "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    parts = [head.encode() + b"%x\r\n%s\r\n" % (len(body), body)]
    parts += [b"0\r\nX-Tenant-Id: acme\r\nX-Principal-Id: ada\r\n\r\n"]
    with socket.create_connection((host, int(port)), 60) as client:
        for part in parts if pause else [b"".join(parts)]:
            client.sendall(part)
            if pause:
                threading.Event().wait(0.2)
        answer = client.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 401 ")
