"""Resource indicators (RFC 8707): which are ours, and what a token of one is for."""

from __future__ import annotations

import pytest
from django.test import Client
from oauth2_provider.models import AccessToken

from recording.oauth import access, resources
from tests.recording.oauth.flows import FORM, ISSUER, REDIRECT, query_of, refusal


@pytest.mark.parametrize(
    "resources",
    [[], [ISSUER], [f"{ISSUER}/"], [f"{ISSUER}/v1/webhooks"], [ISSUER, f"{ISSUER}/v1"]],
)
def test_our_own_resource_indicators_are_served(app, account, resources):
    address = app.address() + "".join(f"&resource={resource}" for resource in resources)
    location = app.visitor.post(address, {"allow": "yes"})["Location"]
    code = location.partition("code=")[2].partition("&")[0]
    form = (
        f"grant_type=authorization_code&code={code}&redirect_uri={REDIRECT}"
        f"&client_id={app.client_id}&code_verifier={app.verifier}"
    ) + "".join(f"&resource={resource}" for resource in resources)
    body = Client().post("/oauth/token", form, FORM).json()
    assert access.authenticate(body["access_token"]) == account
    assert AccessToken.objects.get().resource == resources
    again = app.refresh(body["refresh_token"])
    assert again.status_code == 200
    assert AccessToken.objects.latest("pk").resource == resources


@pytest.mark.parametrize(
    ("base", "resource"),
    [
        ("https://signpost.example", "HTTPS://Signpost.EXAMPLE/mcp"),
        ("https://signpost.example", "https://signpost.example:443/mcp"),
        ("https://signpost.example", "https://signpost.example:"),
        ("https://signpost.example", "https://signpost.example:0443/"),
        ("https://signpost.example", "https://signpost.example/./v1/../%6Dcp"),
        ("https://Signpost.example:443", "https://signpost.example/v1"),
        ("https://signpost.example:8443", "HTTPS://signpost.example:8443/v1/webhooks"),
        ("http://[::1]:8000", "http://[0:0:0:0:0:0:0:1]:8000/mcp"),
        ("http://[2001:db8::1]", "HTTP://[2001:DB8:0::0001]:80/mcp"),
    ],
)
def test_a_resource_is_compared_in_its_normal_form(app, settings, base, resource):
    settings.BASE_URL = base
    path = resources.canonical(resource).removeprefix(resources.canonical(base))
    code = app.code(resource=resource)
    tokens = app.exchange(code, {"resource": f"{base}{path}"}).json()
    assert access.authenticate(tokens["access_token"]) is not None
    again = app.refresh(tokens["refresh_token"], resource=resource)
    assert again.status_code == 200


@pytest.mark.parametrize(
    "resource",
    [
        "https://other.example",
        f"{ISSUER}.evil",
        f"{ISSUER}/v2",
        f"{ISSUER}/MCP",
        f"{ISSUER}/mcp/",
        f"{ISSUER}//mcp",
        f"{ISSUER}/%2Fmcp",
        f"{ISSUER}/mcp?",
        f"{ISSUER}/mcp#x",
        f"{ISSUER} /mcp",
        ISSUER.replace("//", "//user@"),
        ISSUER.replace("http", "https"),
        ISSUER.replace(":8000", ""),
        "//[",
        "mcp",
    ],
)
def test_a_foreign_resource_is_an_invalid_target(app, resource):
    assert app.decide(resource=resource)["error"] == "invalid_target"
    assert refusal(app.exchange(app.code(), {"resource": resource})) == "invalid_target"


def test_a_token_request_cannot_widen_the_resource(app):
    code = app.code(resource=f"{ISSUER}/v1/webhooks")
    assert refusal(app.exchange(code, {"resource": ISSUER})) == "invalid_target"
    assert app.exchange(code).status_code == 200


def test_a_token_for_a_part_of_the_grant_leaves_the_rest_to_the_next(app):
    mcp, api = f"{ISSUER}/mcp", f"{ISSUER}/v1"
    address = app.address() + f"&resource={mcp}&resource={api}"
    location = app.visitor.post(address, {"allow": "yes"})["Location"]
    first = app.exchange(query_of(location)["code"], {"resource": mcp}).json()
    second = app.refresh(first["refresh_token"], resource=api)
    assert second.status_code == 200, second.content
    third = app.refresh(second.json()["refresh_token"])
    tokens = AccessToken.objects.order_by("pk").values_list("resource", flat=True)
    assert list(tokens) == [[mcp], [api], [mcp, api]]
    again = app.refresh(third.json()["refresh_token"], resource=ISSUER)
    assert refusal(again) == "invalid_target"


def test_a_token_request_names_the_resource_of_a_grant_without_one(app):
    tokens = app.exchange(app.code(), {"resource": f"{ISSUER}/mcp"}).json()
    app.refresh(tokens["refresh_token"])
    assert AccessToken.objects.latest("pk").resource == [f"{ISSUER}/mcp"]


def test_a_token_for_another_resource_authenticates_nobody(app, settings):
    token = app.tokens(resource=ISSUER)["access_token"]
    settings.BASE_URL = "https://moved.example"
    assert access.authenticate(token) is None
