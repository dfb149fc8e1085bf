"""Scripts of other sites: the Fetch standard's preflight, and no credentials."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from catalog import cors

pytestmark = pytest.mark.django_db
SHOP = "https://shop.example"
QUERY = {"query": "{ __typename }"}
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type, authorization",
}


def allowed(response):
    assert "Access-Control-Allow-Credentials" not in response
    return response.get("Access-Control-Allow-Origin")


def test_no_other_site_is_allowed_by_default(send, client):
    assert allowed(send(QUERY, Origin=SHOP)) is None
    response = client.options("/graphql", headers={"Origin": SHOP, **PREFLIGHT})
    assert (response.status_code, allowed(response)) == (405, None)


class TestListedOrigins:
    @pytest.fixture(autouse=True)
    def _listed(self, settings):
        settings.CATALOG_CORS_ORIGINS = [SHOP]

    def test_a_listed_origin_reads_answers_and_refusals(self, send, client):
        response = send(QUERY, Origin=SHOP)
        assert (response.status_code, allowed(response)) == (200, SHOP)
        assert "Origin" in response["Vary"]
        refused = client.put("/graphql", headers={"Origin": SHOP})
        assert (refused.status_code, allowed(refused)) == (405, SHOP)

    def test_a_listed_origin_is_answered_before_its_request(self, client):
        response = client.options("/graphql", headers={"Origin": SHOP, **PREFLIGHT})
        assert (response.status_code, allowed(response)) == (204, SHOP)
        assert response["Access-Control-Allow-Methods"] == "GET, POST"
        assert "Authorization" in response["Access-Control-Allow-Headers"]

    @pytest.mark.parametrize(
        "origin", ["https://shop.example.evil", "http://shop.example", "null", ""]
    )
    def test_another_origin_is_not_allowed(self, send, client, origin):
        response = send(QUERY, Origin=origin)
        assert (response.status_code, allowed(response)) == (200, None)
        assert "Origin" in response["Vary"]
        response = client.options("/graphql", headers={"Origin": origin, **PREFLIGHT})
        assert (response.status_code, allowed(response)) == (405, None)


def test_a_star_allows_every_origin(send, settings):
    settings.CATALOG_CORS_ORIGINS = ["*"]
    assert allowed(send(QUERY, Origin=SHOP)) == "*"


@pytest.mark.parametrize("origins", [SHOP, "*", None])
def test_a_text_in_place_of_a_list_stops_the_start(origins):
    with pytest.raises(ImproperlyConfigured, match="must be a list of origins"):
        cors.check(origins)
