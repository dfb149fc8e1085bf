"""What holds at every address: Host, methods, HEAD, slashes, https. Real processes, real sockets."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from django.core.exceptions import DisallowedHost
from django.test import RequestFactory

from config import front
from tests.deploy_check import PRODUCTION
from tests.gateway.chat.harness import IDENTITY
from tests.running import ROOT, Running, environment, free_port, running, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

STATIC = "/static/signpost/site.css"
RECORDING, DETAIL, OPENAI, GRAPHQL, OAUTH, PAGE = (
    ("error", "code"),
    ("detail",),
    ("error", "message"),
    ("errors", 0, "message"),
    ("error_description",),
    (),
)
# Where the text of an error is in the answers of an address.
SHAPES: dict[str, tuple[Any, ...]] = {
    "/v1/webhooks": RECORDING,
    "/v1/webhook-events/samples": RECORDING,
    "/v1/webhooks/subscriptions": DETAIL,
    "/v1/ingest": DETAIL,
    "/v1/usage": DETAIL,
    "/v2/chat/completions": DETAIL,
    "/v1/chat/completions": OPENAI,
    "/v1/embeddings": OPENAI,
    "/v1/models": OPENAI,
    "/graphql": GRAPHQL,
    "/oauth/register": OAUTH,
    "/oauth/token": OAUTH,
    "/oauth/revoke": OAUTH,
    "/.well-known/oauth-authorization-server": OAUTH,
    "/.well-known/oauth-protected-resource": OAUTH,
    "/": PAGE,
    "/docs": PAGE,
    "/openapi.json": PAGE,
    "/metrics": PAGE,
    "/oauth/authorize": PAGE,
    "/accounts/login": PAGE,
    "/accounts/clients": PAGE,
    "/accounts/tokens": PAGE,
    "/admin/": PAGE,
    "/admin/login/": PAGE,
    STATIC: PAGE,
}
UNKNOWN: dict[str, tuple[Any, ...]] = {
    "/v1": RECORDING,
    "/v1/nothing": RECORDING,
    "//v1/webhooks": RECORDING,
    "/v1//webhooks": RECORDING,
    "///v1/webhooks/subscriptions": DETAIL,
    "/v2/nothing": DETAIL,
    "//v2/chat/completions": DETAIL,
    "/v1/chat/nothing": DETAIL,
    "/.well-known/nothing": OAUTH,
    "//oauth/token": OAUTH,
    "/graphql/nothing": GRAPHQL,
}
CHAT = {"model": "echo", "messages": [{"role": "user", "content": "one two"}]}


def told(answer: requests.Response, shape: tuple[Any, ...]) -> Any:
    """Return the text of an error that has the shape of its product."""
    if not shape:
        return answer.text
    assert answer.headers["Content-Type"].startswith("application/json"), answer.text
    value = answer.json()
    for step in shape:
        value = value[step]
    return value


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("front")
    (folder / "gateway.yaml").write_text(
        json.dumps({"models": [{"name": "echo", "upstream": "echo", "model": "echo"}]})
    )
    command = [sys.executable, "manage.py", "migrate", "-v0"]
    subprocess.run(command, env=local(folder), cwd=ROOT, check=True)
    return folder


def local(folder: Path) -> dict[str, str]:
    return environment(
        DATABASE_URL=f"sqlite:///{folder / 'db.sqlite3'}",
        GATEWAY_CONFIG=str(folder / "gateway.yaml"),
    )


@contextmanager
def web(variables: dict[str, str]) -> Iterator[tuple[Running, str]]:
    port = free_port()
    command = ("manage.py", "web", "--port", str(port), "--skip-checks")
    with running(*command, environment=variables) as it:
        until(lambda: answers(port), "the web server")
        yield it, f"http://127.0.0.1:{port}"


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def site(folder) -> Iterator[tuple[Running, str]]:
    with web(local(folder)) as it:
        yield it


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
    with web(environment(**variables)) as it:
        yield it


def ask(url: str, path: str, method: str = "GET", **options: Any) -> requests.Response:
    options = {"timeout": 60, "allow_redirects": False} | options
    # A prepared request keeps slashes that `requests` would take away.
    request = requests.Request(method, url, headers=options.pop("headers", None))
    if "json" in options:
        request.json = options.pop("json")
    prepared = request.prepare()
    prepared.url = url + path
    with requests.Session() as session:
        return session.send(prepared, **options)


def raw(url: str, path: str, *lines: str) -> tuple[int, bytes]:
    """Ask with these header lines alone; return the status and the body."""
    host, port = url.removeprefix("http://").split(":")
    head = [f"GET {path} HTTP/1.1", *lines, "Connection: close", "", ""]
    with socket.create_connection((host, int(port)), 60) as client:
        client.sendall("\r\n".join(head).encode())
        found = b""
        with suppress(ConnectionError):
            while part := client.recv(100_000):
                found += part
    head_, _, body = found.partition(b"\r\n\r\n")
    return int(head_.split()[1]), body


@pytest.mark.parametrize("path", SHAPES)
def test_a_host_that_is_not_ours_is_refused_in_the_shape_of_the_address(site, path):
    process, url = site
    before = process.output.count("Host is not allowed")
    answer = ask(url, path, headers={"Host": "evil.example", **IDENTITY})
    assert answer.status_code == 400
    assert told(answer, SHAPES[path])
    until(
        lambda: process.output.count("Host is not allowed") == before + 1, "the warning"
    )
    assert "Traceback" not in process.output


def test_who_rebinds_a_name_spends_nobodys_keys(url):
    for host, status in (("evil.example", 400), ("localhost:1", 200)):
        headers = {"Host": host, **IDENTITY}
        for path in ("/v1/chat/completions", "/v2/chat/completions"):
            answer = ask(url, path, "POST", json=CHAT, headers=headers)
            assert answer.status_code == status


@pytest.mark.parametrize("path", SHAPES)
@pytest.mark.parametrize(
    "lines",
    [[], ["Host: localhost", "Host: localhost"], ["Host: localhost, localhost"]],
)
def test_a_missing_or_repeated_host_is_400(url, path, lines):
    status, body = raw(url, path, *lines, "X-Tenant-Id: a", "X-Principal-Id: b")
    assert status == 400
    for step in SHAPES[path]:
        assert str(step) in body.decode() or step == 0


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("lines", [[], ["Host: 10.1.2.3:8000"], ["Host: a", "Host: b"]])
def test_probes_may_name_any_host(url, production, path, lines):
    assert raw(url, path, *lines)[0] == 200
    assert raw(production[1], path, *lines)[0] == 200


@pytest.mark.parametrize(
    "allowed",
    [
        ["signpost.example"],
        [".example"],
        ["*"],
        ["[::1]", "127.0.0.1"],
        [],
        ["UPPER.example"],
    ],
)
def test_chat_reads_allowed_hosts_as_django_does(settings, allowed):
    settings.ALLOWED_HOSTS = allowed
    for host in (
        "signpost.example", "SIGNPOST.example:443", "signpost.example.", "example",
        "a.b.example", "xexample", "[::1]", "[::1]:8000", "::1", "127.0.0.1:80",
        "upper.example", "signpost.example:port", "a b", "", "signpost.example/x",
        "signpost.example@evil", "évil", "signpost.example,signpost.example",
    ):  # fmt: skip
        request = RequestFactory().get("/", headers={"Host": host})
        try:
            request.get_host()
            expected = True
        except DisallowedHost:
            expected = False
        scope = {"headers": [(b"host", host.encode("latin-1"))], "scheme": "http"}
        assert (host, front.admits(scope)) == (host, expected)


GETS = sorted(
    set(SHAPES)
    - {"/v1/ingest", "/v2/chat/completions", "/v1/chat/completions", "/v1/embeddings"}
    - {"/oauth/register", "/oauth/token", "/oauth/revoke"}
)
VARYING = {"date", "x-request-id", "transfer-encoding", "set-cookie", "expires"}
GROWING = {"/metrics"}  # from one look to the next


@pytest.mark.parametrize("path", [*GETS, "/graphql?query={__typename}", *UNKNOWN])
@pytest.mark.parametrize("accept", ["text/html", "*/*"])
def test_head_has_the_headers_of_get_and_no_body(url, path, accept):
    headers = {"Accept": accept, "Accept-Encoding": "identity", **IDENTITY}
    got, head = (ask(url, path, m, headers=headers) for m in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert got.content or got.status_code == 302

    def kept(answer: requests.Response) -> dict[str, str]:
        left_out = VARYING | ({"content-length"} if path in GROWING else set())
        return {k: v for k, v in answer.headers.lower_items() if k not in left_out}

    assert kept(head) == kept(got)


@pytest.mark.parametrize("method", ["FOO", "PROPFIND"])
@pytest.mark.parametrize("path", SHAPES)
def test_an_unknown_method_is_405_in_the_shape_of_the_address(url, path, method):
    answer = ask(url, path, method, headers=IDENTITY)
    assert answer.status_code == 405
    assert answer.headers["Allow"]
    if SHAPES[path]:
        assert told(answer, SHAPES[path])


@pytest.mark.parametrize("method", ["GET", "POST", "FOO"])
@pytest.mark.parametrize("path", UNKNOWN)
def test_an_unknown_address_answers_like_its_neighbours(url, path, method):
    answer = ask(url, path, method, headers=IDENTITY)
    assert answer.status_code == 404
    assert told(answer, UNKNOWN[path])
    neighbour = {
        RECORDING: "/v1/webhooks",
        DETAIL: "/v1/usage",
        OAUTH: "/oauth/token",
        GRAPHQL: "/graphql",
    }[UNKNOWN[path]]
    known = ask(url, neighbour, "PUT", headers=IDENTITY)
    for name in (
        "Access-Control-Allow-Origin",
        "Access-Control-Expose-Headers",
        "Cache-Control",
        "Vary",
    ):
        assert (name, answer.headers.get(name)) == (name, known.headers.get(name))


def test_the_start_is_told_with_version_environment_and_address(site, folder):
    process, url = site
    [line] = [it for it in process.lines if "web server starts" in it]
    assert "version=0.1.0" in line
    assert "environment=local" in line
    assert f"address={url}" in line
    with running("manage.py", "qcluster", environment=local(folder)) as it:
        it.wait_for("task cluster starts")
        [line] = [one for one in it.lines if "task cluster starts" in one]
    assert "version=0.1.0" in line
    assert "environment=local" in line
    assert "address=http://127.0.0.1:8000" in line


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
    assert (evil.status_code, told(evil, OPENAI)) == (400, "The request is not valid.")


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


@pytest.mark.skipif(not shutil.which("haproxy"), reason="there is no HAProxy")
@pytest.mark.parametrize(
    "path", ["/v1/ingest", "/v1/webhooks/subscriptions", "/v2/chat/completions"]
)
@pytest.mark.parametrize("pause", [False, True])
def test_trailers_through_a_proxy_that_deletes_identity_headers_are_nobody(
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
