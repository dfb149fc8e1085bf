"""Owners see and change nothing of each other, and strangers nothing at all."""

import pytest

from tests.products.product import OTHER_URL, READS, VERBS
from webhooks_core.models import Event

pytestmark = pytest.mark.django_db

OPERATIONS = [
    ("PATCH", "", {"url": OTHER_URL, "events": []}),
    ("DELETE", "", None),
    ("POST", "/test", None),
    ("GET", "/deliveries", None),
    *(("GET", f"/{tail}", None) for tail in (*READS, "settings")),
    *(("POST", f"/{tail}", {}) for tail in VERBS),
    ("PATCH", "/settings", {"standard_headers": True}),
]
IMPOSSIBLE = [
    *("{absent}", "{prefix}", "x", "%00", "{prefix}%00" + "0" * 25, "%ff"),
    *("%ED%A0%80", "{prefix}" + "Z" * 26, "1", "é", "x" * 5000),
    *("ep_" + "1" * 26, "whsub_" + "1" * 26),
]


@pytest.mark.parametrize(("method", "tail", "body"), OPERATIONS)
@pytest.mark.spec("recording", "another account's subscription is 404, never 403")
@pytest.mark.spec(
    "recording", "the account creates, lists, updates, deletes and tests subscriptions"
)
def test_another_owner_s_subscription_is_not_there(
    product, mine, theirs, method, tail, body
):
    created = mine.new_id()
    before = mine.get()
    response = theirs.call(method, f"/{created}{tail}", body)
    absent = theirs.call(method, f"/{product.absent}{tail}", body)
    assert product.error(response, 404) == "There is no such subscription."
    assert response.content == absent.content
    assert theirs.get() == []
    assert mine.get() == before
    assert not Event.objects.exists()


@pytest.mark.parametrize("text", IMPOSSIBLE, ids=lambda text: text[:20])
@pytest.mark.spec("recording", "404 not_found: subscription id does not exist")
def test_an_id_that_does_not_exist_is_404(product, mine, text):
    text = text.format(absent=product.absent, prefix=product.prefix)
    # One method finds the subscription for all operations: those of the contract suffice.
    for method, tail, body in OPERATIONS[:4]:
        product.error(mine.call(method, f"/{text}{tail}", body), 404)
