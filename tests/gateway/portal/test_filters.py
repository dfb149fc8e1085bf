"""The filter of a subscription in the settings of its page: edited, and tested with events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.portal.conftest import (
    NOWHERE,
    Visitor,
    endpoint_of,
    event_of,
    new_link,
    visit,
)
from tests.webhooks_core.admin.looking import nothing_changes
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db
FILTER = {"data": {"size": {"$gte": 10}}}


def settings(**fields: Any) -> dict[str, Any]:
    return {"url": NOWHERE, "active": "on", "filter": json.dumps(FILTER)} | fields


def path_of(endpoint: Endpoint) -> str:
    return f"/endpoints/{endpoint.public_id}"


def outcome(person: Visitor, endpoint: Endpoint, event: str, **fields: Any) -> str:
    return person.post(f"{path_of(endpoint)}/filter", event=event, **settings(**fields))


def test_a_filter_is_edited_and_its_changes_are_listed(grace):
    assert "The endpoint was added" in grace.post("", **settings())
    endpoint = Endpoint.objects.get()
    assert endpoint.filter == FILTER
    assert "&quot;$gte&quot;: 10" in grace.get(path_of(endpoint))
    grace.post(path_of(endpoint), **settings(filter='{"data": {"size": {"$lt": 3}}}'))
    page = grace.get("/changes")
    assert "{&quot;data&quot;: {&quot;size&quot;: {&quot;$gte&quot;: 10}}} →" in page
    grace.post(path_of(endpoint), **settings(filter=" \n"))
    endpoint.refresh_from_db()
    assert endpoint.filter is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "The filter is not JSON:"),
        ('{"a": NaN}', "The filter is not JSON:"),
        ('{"a": "\x00"}', "Null characters are not allowed."),
        ("[]", "Filter must be an object."),
        ('{"type": {"$regex": "x"}}', "Filter.type.$regex is no operator; known are"),
        ('{"a": [[1]]}', "Filter.a must be an array of strings"),
        ("[" * 9000, "The filter is not JSON:"),
        ('{"a":' * 9 + "1" + "}" * 9, "Filter is nested deeper than 8 levels."),
        (json.dumps({"a": "x" * 20_000}), "Filter is over 16384 bytes."),
    ],
)
def test_a_filter_that_is_not_one_is_refused_and_kept_in_the_form(grace, text, message):
    endpoint = endpoint_of(filter=FILTER)
    with nothing_changes():
        for path in (path_of(endpoint), f"{path_of(endpoint)}/filter", ""):
            page = grace.post(path, 400, **settings(filter=text, event="x"))
            assert message in page


def test_an_event_is_tested_with_what_is_in_the_form(grace):
    endpoint = endpoint_of(filter={"type": "another"})
    large, small = event_of(size=12), event_of(size=3)
    page = grace.get(path_of(endpoint))
    assert page.index(small.public_id) < page.index(large.public_id)  # newest first
    with nothing_changes():
        page = outcome(grace, endpoint, large.public_id)
        assert "This event passes" in page
        assert f'value="{large.public_id}" selected' in page
        page = outcome(grace, endpoint, small.public_id)
        assert "This event does not pass" in page
        assert "data.size is 3, expected {&quot;$gte&quot;:10}" in page
        assert "This event passes" in outcome(
            grace, endpoint, small.public_id, filter=""
        )


def test_no_event_of_another_tenant_is_tested(grace):
    endpoint, theirs = endpoint_of(), event_of("globex", size=3)
    foreign = f"{path_of(endpoint_of('globex'))}/filter"
    event_of(size=12)
    assert theirs.public_id not in grace.get(path_of(endpoint))
    with nothing_changes():
        for event in (theirs.public_id, "evt_" + "0" * 26, "", "x", "\x00"):
            page = outcome(grace, endpoint, event)
            assert "There is no such event any more" in page
            assert "data.size" not in page
        grace.post(foreign, 404, **settings(event=theirs.public_id))


def test_who_may_not_see_payloads_tests_no_filter(db):
    """Each test would tell something of the payload."""
    editor = visit(new_link(capabilities=["view", "manage", "send"]))
    endpoint, event = endpoint_of(), event_of(size=3)
    page = editor.get(path_of(endpoint))
    assert 'name="filter"' in page
    assert "Test the filter" not in page
    path = f"{path_of(endpoint)}/filter"
    assert editor.send(path, **settings(event=event.public_id)).status_code == 403
    reader = visit(new_link(capabilities=["view", "view_payload"]))
    assert "Test the filter" not in reader.get(path_of(endpoint))
