"""A client that runs in a page of another origin, in Chromium: from a bare 401 to a revocation."""

from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import Page

from tests.factories import UserFactory
from tests.receiver import receiver
from tests.recording.oauth.flows import REDIRECT, App

METHODS = ["none", "client_secret_basic", "client_secret_post"]

DISCOVER = """async ({api, metadata}) => {
  const refused = await fetch(api);
  const challenge = refused.headers.get("WWW-Authenticate");
  const where = /resource_metadata="([^"]+)"/.exec(challenge)[1];
  const resource = await (await fetch(where)).json();
  const issuer = resource.authorization_servers[0];
  const headers = {"MCP-Protocol-Version": "2025-06-18"};
  const server = await (
    await fetch(issuer + "/.well-known/oauth-authorization-server", {headers})
  ).json();
  const client = await (await fetch(server.registration_endpoint, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(metadata),
  })).json();
  return {status: refused.status, server, client};
}"""

USE = """async ({api, server, client, form}) => {
  const method = client.token_endpoint_auth_method;
  const send = async (address, fields) => {
    const body = new URLSearchParams({client_id: client.client_id, ...fields}), headers = {};
    if (method === "client_secret_basic")
      headers.Authorization = "Basic " + btoa(client.client_id + ":" + client.client_secret);
    if (method === "client_secret_post") body.set("client_secret", client.client_secret);
    return fetch(address, {method: "POST", headers, body});
  };
  const get = async ({access_token}) =>
    (await fetch(api, {headers: {Authorization: "Bearer " + access_token}})).status;
  const first = await (await send(server.token_endpoint, form)).json();
  const second = await (await send(server.token_endpoint, {
    grant_type: "refresh_token", refresh_token: first.refresh_token,
  })).json();
  const used = [await get(first), await get(second)];
  const fault = await (await send(server.token_endpoint, {grant_type: "password"})).json();
  const ended = await send(server.revocation_endpoint, {token: second.refresh_token});
  return {used, fault: fault.error, revoked: [ended.status, await ended.text()], dead: await get(second)};
}"""

BLOCKED = """async (addresses) => {
  const outcomes = [];
  for (const [address, options] of addresses) {
    try { outcomes.push((await fetch(address, options)).status) }
    catch (error) { outcomes.push(error.name) }
  }
  return outcomes;
}"""


@pytest.fixture
def elsewhere(page: Page) -> Iterator[Page]:
    """A page of another origin: another host name, another port."""
    with receiver(200) as server:
        server.headers["Content-Type"] = "text/html"
        server.answer = b"<!doctype html><title>Notebook</title>"
        page.goto(server.origin)
        yield page


@pytest.fixture
def visitor(db) -> Client:
    client = Client()
    account = UserFactory.create(username="ada", email="ada@example.org")
    client.force_login(account, "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.mark.parametrize("method", METHODS)
def test_a_script_of_another_origin_connects_uses_and_revokes(
    elsewhere, live_server, settings, complaints, visitor, method
):
    settings.BASE_URL = live_server.url
    api = f"{live_server.url}/v1/webhooks"
    metadata = {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": method}
    discovered = elsewhere.evaluate(DISCOVER, {"api": api, "metadata": metadata})
    assert discovered["status"] == 401
    app = App(visitor, discovered["client"]["client_id"])
    form = {
        "grant_type": "authorization_code",
        "code": app.code(),
        "redirect_uri": REDIRECT,
        "code_verifier": app.verifier,
    }
    used = elsewhere.evaluate(USE, discovered | {"api": api, "form": form})
    assert used == {
        "used": [200, 200],
        "fault": "unsupported_grant_type",
        "revoked": [200, ""],
        "dead": 401,
    }
    # Chromium reports each status above 399; nothing was blocked.
    assert all("status of 40" in complaint for complaint in complaints)


def test_a_script_of_another_origin_reads_no_page_and_sends_no_cookie(
    elsewhere, live_server, settings
):
    settings.BASE_URL = live_server.url
    credentials = {"credentials": "include"}
    closed = ["/oauth/authorize", "/accounts/login/", "/accounts/tokens", "/admin/"]
    addresses = [[live_server.url + path, {}] for path in closed]
    addresses.append([f"{live_server.url}/v1/webhooks", credentials])
    addresses.append(
        [f"{live_server.url}/oauth/token", {"method": "POST"} | credentials]
    )
    addresses.append([f"{live_server.url}/v1/webhooks", {}])
    outcomes = elsewhere.evaluate(BLOCKED, addresses)
    assert outcomes == ["TypeError"] * 6 + [401]
