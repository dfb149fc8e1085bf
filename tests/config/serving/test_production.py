"""In production chat redirects to https and has the headers of everything else."""

import pytest

from tests.config.sites import CHAT, ask, error_text, raw
from tests.gateway.chat.harness import IDENTITY

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("lines", [[], ["Host: 10.1.2.3:8000"], ["Host: a", "Host: b"]])
def test_probes_may_name_any_host(production, path, lines):
    assert raw(production[1], path, *lines)[0] == 200
