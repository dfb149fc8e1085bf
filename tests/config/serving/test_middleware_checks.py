"""What holds at every address: Host, methods, HEAD, slashes, https. Real processes, real sockets."""

from typing import Any

import pytest
import requests

from tests.config.sites import CHAT, HOSTS_OF_PROBES, ask, error_text, raw
from tests.gateway.chat.harness import IDENTITY
from tests.running import until

pytestmark = pytest.mark.slow

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
    "/v1/responses": OPENAI,
    "/v1/models": OPENAI,
    "/v1/messages": OPENAI,  # its errors have the text at the same place
    "/chat/completions": DETAIL,
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
    "/accounts/login/": PAGE,
    "/accounts": PAGE,
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
    "/v1/chat/nothing": OPENAI,
    "/v1/responses/resp_1": OPENAI,
    "/v1/embeddings/": OPENAI,
    "/v1/messages/batches": OPENAI,
    "/.well-known/nothing": OAUTH,
    "//oauth/token": OAUTH,
    "/graphql/nothing": GRAPHQL,
}


@pytest.mark.parametrize("path", SHAPES)
def test_a_host_that_is_not_allowed_is_refused_in_the_products_format(site, path):
    process, url = site
    before = process.output.count("Host is not allowed")
    answer = ask(url, path, headers={"Host": "evil.example", **IDENTITY})
    assert answer.status_code == 400
    assert error_text(answer, SHAPES[path])
    until(
        lambda: process.output.count("Host is not allowed") == before + 1, "the warning"
    )
    assert "Traceback" not in process.output


def test_dns_rebinding_cannot_use_the_identity_of_loopback(url):
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
@HOSTS_OF_PROBES
def test_probes_may_name_any_host(url, path, lines):
    assert raw(url, path, *lines)[0] == 200


GETS = sorted(
    set(SHAPES)
    - {"/v1/ingest", "/v2/chat/completions", "/v1/chat/completions", "/v1/embeddings"}
    - {"/v1/responses", "/v1/messages", "/chat/completions"}
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


@pytest.mark.parametrize("path", [path for path in SHAPES if SHAPES[path]])
def test_a_method_of_webdav_is_405_in_the_products_format(url, path):
    answer = ask(url, path, "PROPFIND", headers=IDENTITY)
    assert answer.status_code == 405
    assert answer.headers["Allow"]
    assert error_text(answer, SHAPES[path])


@pytest.mark.parametrize("method", ["GET", "POST", "PROPFIND"])
@pytest.mark.parametrize("path", UNKNOWN)
def test_an_unknown_address_is_404_with_the_headers_of_its_product(url, path, method):
    answer = ask(url, path, method, headers=IDENTITY)
    assert answer.status_code == 404
    assert error_text(answer, UNKNOWN[path])
    neighbour = {
        RECORDING: "/v1/webhooks",
        DETAIL: "/v1/usage",
        OPENAI: "/v1/usage",
        OAUTH: "/oauth/token",
        GRAPHQL: "/graphql",
    }[UNKNOWN[path]]
    known = ask(url, neighbour, "PUT", headers=IDENTITY)
    for name in (
        "Access-Control-Allow-Origin",
        "Access-Control-Expose-Headers",
        "Cache-Control",
    ):
        assert (name, answer.headers.get(name)) == (name, known.headers.get(name))
