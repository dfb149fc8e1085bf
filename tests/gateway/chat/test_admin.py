"""Chat in the admin: what usage looks like, and that it only shows."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from gateway.chat.metering import usage
from gateway.chat.model_registry import load
from gateway.chat.models import (
    ModelEndpoint,
    ModelPrice,
    ModelTarget,
    UsageBucket,
    UsageDay,
    UsageRecord,
    UsageTotal,
)
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import Target
from tests.gateway.chat.factories import LoggedRequestFactory, ModelPriceFactory
from tests.gateway.chat.metering.test_usage import ended
from webhooks_core.admin import base

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, 7, tzinfo=UTC)
RECORDS, DAYS = "/admin/gateway_chat/usagerecord/", "/admin/gateway_chat/usageday/"
LOGGED = "/admin/gateway_chat/loggedrequest/"


def cells(page) -> list[list[str]]:
    """Return the texts of a list's rows, as the admin computes them."""
    changes = page.context["cl"]
    shown = changes.model_admin
    return [
        [str(getattr(shown, name)(row)) for name in ("at", "outcome", "tokens", "took")]
        for row in changes.result_list
    ]


def test_a_record_tells_its_outcome_tokens_and_times(admin_client):
    usage.write(
        [
            ended(at=NOON, usage=Usage(9473, 2), duration_s=4.2, first_chunk_s=0.35),
            ended(at=NOON, error_status=500, usage=None, first_chunk_s=None),
            ended(at=NOON, ending="no finish reason", first_chunk_s=None),
        ]
    )
    page = admin_client.get(RECORDS)
    assert cells(page) == [
        ["20 Nov 12:00:07", "200, no finish reason", "9 + 2", "1.50"],
        ["20 Nov 12:00:07", "200, then 500", "? + ?", "1.50"],
        ["20 Nov 12:00:07", "200", "9,473 + 2", "0.35 of 4.20"],
    ]
    assert b"9,473 + 2" in page.content


def test_a_record_tells_its_estimates_and_the_parts_of_its_tokens(admin_client):
    usage.write([ended(at=NOON, usage=Usage(1234, 56, 78, 9, 11), estimated=True)])
    assert cells(admin_client.get(RECORDS))[0][2] == "about 1,234 + 56"
    record = UsageRecord.objects.get()
    page = admin_client.get(f"{RECORDS}{record.pk}/change/").content.decode()
    for label in ("Cached tokens:", "Cache write tokens:", "Reasoning tokens:"):
        assert label in page
    assert "Estimated:" in page


def test_prices_of_details_may_stay_empty(admin_client):
    form = {"model": "small", "prompt_price": "2.5", "completion_price": "10"}
    page = "/admin/gateway_chat/modelprice/add/"
    assert admin_client.post(page, form | {"reasoning_price": "-1"}).status_code == 200
    form |= {"cached_input_price": "1.25", "reasoning_price": ""}
    assert admin_client.post(page, form).status_code == 302
    price = ModelPrice.objects.get()
    assert price.cached_input_price == Decimal("1.25")
    assert (price.cache_write_price, price.reasoning_price) == (None, None)


def test_days_tell_what_was_spent(admin_client):
    ModelPriceFactory.create(model="small")
    usage.write(
        [ended(at=NOON, usage=Usage(1_000_000, 2)), ended(at=NOON, model="free")]
    )
    page = admin_client.get(DAYS).content.decode()
    assert "1,000,000 + 2" in page
    assert "1.000004<" in page
    assert '<td class="field-cost">0</td>' in page


def test_a_day_tells_its_failures_beside_its_requests(admin_client):
    usage.write([ended(at=NOON), ended(at=NOON, status=500)])
    assert ">2, 1 failed<" in admin_client.get(DAYS).content.decode()


@pytest.mark.parametrize(
    ("address", "model"), [(RECORDS, UsageRecord), (DAYS, UsageDay)]
)
def test_a_page_tells_costs_as_prices_and_times_as_elsewhere(
    admin_client, address, model
):
    ModelPriceFactory.create(model="small")
    usage.write([ended(at=NOON, usage=Usage(1_000_000, 2))])
    row = model.objects.get()
    text = admin_client.get(f"{address}{row.pk}/change/").content.decode()
    assert "1.000004<" in text
    assert "nano" not in text.lower()
    assert "2026-11-20" in text


def test_a_logged_request_shows_its_rules_and_tools_as_names(admin_client):
    row = LoggedRequestFactory.create(tools='["tide","search"]')
    page = admin_client.get(f"{LOGGED}{row.pk}/change/").content.decode()
    assert ">no cards<" in page
    assert ">tide, search<" in page
    bare = LoggedRequestFactory.create()
    page = admin_client.get(f"{LOGGED}{bare.pk}/change/").content.decode()
    assert ">[]<" not in page


@pytest.mark.parametrize("name", ["modelendpoint", "modelprice"])
def test_a_list_is_called_by_what_it_shows(admin_client, name):
    page = admin_client.get(f"/admin/gateway_chat/{name}/").content.decode()
    assert "<h1>Model " in page


def test_a_request_without_a_price_shows_no_cost(admin_client):
    usage.write([ended(at=NOON)])
    (row,) = admin_client.get(RECORDS).context["cl"].result_list
    assert admin_client.get(RECORDS).context["cl"].model_admin.cost(row) == "-"


@pytest.mark.parametrize("address", [RECORDS, DAYS])
def test_usage_is_neither_added_nor_changed_nor_deleted(admin_client, address):
    usage.write([ended(at=NOON)])
    record = UsageRecord.objects.get()
    assert admin_client.get(f"{address}add/").status_code == 403
    for page in ("change", "delete"):
        body = {"post": "yes", "tenant": "forged"}
        response = admin_client.post(f"{address}{record.pk}/{page}/", body)
        assert response.status_code in (302, 403, 404)
    assert UsageRecord.objects.get().tenant == "acme"


def test_things_are_called_by_what_they_are():
    assert str(UsageTotal(model="m", status=200)) == "m 200"
    assert str(UsageBucket(metric="duration", model="m", bucket=3)) == "duration m 3"
    assert str(UsageRecord(request_id="req-7")) == "req-7"
    assert str(ModelPrice(model="m")) == "m"
    assert str(ModelTarget(model="there")) == "there"


FORM = {
    "name": "rows",
    "upstream": "openai",
    "inference_type": "chat",
    "supports": "streaming\r\n tools ",
    "allow_tenants": "acme",
    "allow_principals": "acme/ada\nglobex/gus",
    "connect_s": "5",
    "first_byte_s": "60",
    "idle_s": "60",
    "total_s": "",
    "is_active": "on",
    "targets-TOTAL_FORMS": "1",
    "targets-INITIAL_FORMS": "0",
    "targets-0-base_url": "http://127.0.0.1:1/v1",
    "targets-0-model": "there",
    "targets-0-api_key": "sk-secret",
    "targets-0-weight": "1",
}
ADD = "/admin/gateway_chat/modelendpoint/add/"


def test_an_endpoint_is_made_in_the_admin_and_its_key_is_kept(admin_client):
    assert admin_client.post(ADD, FORM).status_code == 302
    entry = load()["rows"]
    assert entry.supports == frozenset({"streaming", "tools"})
    assert entry.allow.tenants == frozenset({"acme"})
    assert entry.allow.principals == {("acme", "ada"), ("globex", "gus")}
    assert entry.targets[0].api_key == "sk-secret"

    row = ModelEndpoint.objects.get(name="rows")
    page = f"/admin/gateway_chat/modelendpoint/{row.pk}/change/"
    text = admin_client.get(page).content.decode()
    assert "streaming\ntools" in text
    assert "sk-secret" not in text
    again = FORM | {
        "targets-INITIAL_FORMS": "1",
        "targets-0-id": str(row.targets.get().pk),
        "targets-0-endpoint": str(row.pk),
        "targets-0-api_key": "",
        "targets-0-weight": "3",
    }
    assert admin_client.post(page, again).status_code == 302
    assert load()["rows"].targets[0] == Target(
        "http://127.0.0.1:1/v1", "there", "sk-secret", 3
    )


OPTIONS = """drop_params: [seed]
extra_headers: {X-Team: "${TEAM}"}
retries: 2
fallbacks: [echo]
"""


def test_more_keys_of_an_endpoint_are_those_of_the_file(admin_client, monkeypatch):
    monkeypatch.setenv("TEAM", "harbour")
    assert admin_client.post(ADD, FORM | {"options": OPTIONS}).status_code == 302
    entry = load()["rows"]
    assert (entry.drop_params, entry.retries) == (("seed",), 2)
    assert (entry.extra_headers, entry.fallbacks) == ({"X-Team": "harbour"}, ("echo",))
    monkeypatch.delenv("TEAM")  # as without the key of a target, it is left out
    assert "rows" not in load()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("retries: 99", "retries: must be "),
        ("- retries", "must have only keys of drop_params"),
        ("name: other", "must have only keys of drop_params"),
        ("retries: [", "is not YAML."),
        ("retries: 1\nretries: 2", "is not YAML."),
        ("fallbacks: [rows]", "fallbacks: &#x27;rows&#x27; is no other model endpoint."),
        ("context_fallbacks: [absent]", "is no other model endpoint."),
        ("extra_headers: {X: '${NOT_SET_ANYWHERE}'}", "NOT_SET_ANYWHERE is not set."),
        ("extra_headers: {Host: x}", "must not set Host."),
        ("extra_body: {model: x}", "must not set model."),
        ("proxy: ftp://x", "must be the http or https address of a proxy."),
        ("server: nobody", "server: "),
    ],
)  # fmt: skip
def test_more_keys_that_the_file_refuses_are_not_stored(admin_client, options, fault):
    page = admin_client.post(ADD, FORM | {"options": options})
    assert fault in page.content.decode()
    assert not ModelEndpoint.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "echo"),
        ("inference_type", "chatt"),
        ("inference_type", ""),
        ("supports", "stream"),
        ("supports", "streaming\nimages"),
        ("supports", "tools\ntools"),
        ("allow_tenants", "two words"),
        ("allow_principals", "nobody"),
        ("idle_s", "0"),
        ("targets-0-api_key", "${NOT_SET_ANYWHERE}"),
        ("targets-0-api_key", "$NOT_SET_ANYWHERE"),
        ("targets-0-api_key", "x${NOT_SET_ANYWHERE}"),
        ("targets-0-api_key", "sk\n1"),
        ("targets-0-api_key", "clé"),
        ("targets-0-base_url", "http://x/v 1"),
        *(
            ("targets-0-base_url", url)
            for url in ("file:///etc/passwd", "https://one.example:99999/v1", "https://[::1", "https://x/v1?key=1")
        ),
    ],
)  # fmt: skip
def test_a_bad_endpoint_is_not_stored(admin_client, field, value):
    assert admin_client.post(ADD, FORM | {field: value}).status_code == 200
    assert not ModelEndpoint.objects.exists()


@pytest.mark.parametrize(
    "supports", [["stream"], ["tools", "tools"], [""], [1], [["tools"]], "tools", {}, 5]
)
def test_a_row_supports_nothing_but_the_fixed_values(supports):
    row = ModelEndpoint(name="m", upstream="echo", supports=supports or {"a": 1})
    with pytest.raises(ValidationError, match="supports"):
        row.full_clean()


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        *(
            ("model=free", 1),
            ("model=none", 0),
            ("model=%00", 0),
            ("o=-1&model=free", 1),
        ),
        *(("status=200", 2), ("status=404", 0), ("status=x", 0)),
        *(("streamed__exact=0", 2), ("q=req-", 2), ("o=3", 2)),
    ],
)
def test_records_are_filtered_searched_and_sorted(admin_client, query, shown):
    usage.write([ended(at=NOON, streamed=False), ended(model="free", streamed=False)])
    page = admin_client.get(f"{RECORDS}?{query}")
    assert len(page.context["cl"].result_list) == shown


def test_a_search_looks_at_the_newest_and_finds_whole_ids_and_tenants_of_all(
    admin_client, monkeypatch
):
    usage.write([ended(request_id="old-one"), ended(request_id="new-one")])

    def found(query: str) -> list[str]:
        rows = admin_client.get(f"{RECORDS}?{query}").context["cl"].result_list
        return [row.request_id for row in rows]

    monkeypatch.setattr(base, "SEARCHED_AT_MOST", 1)
    assert found("q=one") == ["new-one"]
    assert found("q=old-one") == ["old-one"]
    assert found("status=200") == ["new-one"]
    tenant = UsageRecord.objects.earliest("pk").tenant
    assert found(f"q={tenant}") == ["new-one", "old-one"]
