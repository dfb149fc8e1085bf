"""What holds at every address: Host, slashes. Real processes, real sockets."""

from typing import Any

import pytest

from tests.config.sites import CHAT, ask, error_text, raw
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
# Of each carrier and format an address: where the text of an error is in its answers.
SHAPES: dict[str, tuple[Any, ...]] = {
    "/v1/webhooks": RECORDING,
    "/v1/webhooks/subscriptions": DETAIL,
    "/v2/chat/completions": DETAIL,
    "/v1/chat/completions": OPENAI,
    "/v1/messages": OPENAI,  # its errors have the text at the same place
    "/graphql": GRAPHQL,
    "/oauth/token": OAUTH,
    "/docs": PAGE,
    "/accounts/login/": PAGE,
    "/admin/": PAGE,
    STATIC: PAGE,
}
# Besides those in the golden file of tests/contract.
UNKNOWN: dict[str, tuple[Any, ...]] = {
    "//v1/webhooks": RECORDING,
    "/v1//webhooks": RECORDING,
    "///v1/webhooks/subscriptions": DETAIL,
    "//v2/chat/completions": DETAIL,
    "/v1/chat/nothing": OPENAI,
    "/v1/responses/resp_1": OPENAI,
    "/v1/embeddings/": OPENAI,
    "/v1/messages/batches": OPENAI,
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


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PROPFIND"])
@pytest.mark.parametrize("path", UNKNOWN)
def test_an_unknown_address_is_404_in_the_products_format(url, path, method):
    answer = ask(url, path, method, headers=IDENTITY)
    assert answer.status_code == 404
    assert method == "HEAD" or error_text(answer, UNKNOWN[path])
