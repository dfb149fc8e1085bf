"""How many subscriptions an owner may have, how fast it creates them, and calls at one moment."""

from collections import Counter
from typing import Any

import pytest

from tests.products.product import URL
from tests.threads import at_once, together
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db


def fill(caller, *, but=0):
    """Use up the quota, but for so many."""
    for _ in range(caller.product.quota - but):
        endpoints.create(
            profile=caller.product.name, owner=caller.owner, url=URL, event_types=[]
        )


@pytest.mark.spec("recording", "429 too_many_requests: subscription quota exceeded")
@pytest.mark.spec("recording", "deleting frees the quota")
@pytest.mark.spec("recording", "disabled endpoints count until deleted")
def test_the_quota_is_each_owner_s_own_and_a_deletion_frees_a_place(
    product, mine, theirs
):
    fill(mine)
    Endpoint.objects.update(status=Endpoint.Status.DISABLED)
    message = product.error(mine.call("POST", "", {"url": URL}), 429)
    assert f"at most {product.quota} subscriptions" in message
    # A fault of the fields is reported before.
    product.error(mine.call("POST", "", {"url": "nonsense"}), 400)
    theirs.create()
    mine.call("DELETE", f"/{mine.endpoints.first().public_id}")
    mine.create()
    assert mine.endpoints.count() == product.quota


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "Subscriptions per account: 5")
@pytest.mark.spec("recording", "create has no idempotency key")
def test_of_many_creations_at_once_only_the_quota_succeeds(product, mine):
    fill(mine, but=5)

    def create():
        return mine.in_thread().call("POST", "", {"url": URL}).status_code

    assert sorted(at_once(12, create)) == [201] * 5 + [429] * 7
    assert mine.endpoints.count() == product.quota


@pytest.mark.usefixtures("no_counts")
@pytest.mark.parametrize(("scope", "tail"), [("create", ""), ("test", "/{}/test")])
@pytest.mark.spec("recording", "in production limits on create and /test by setting")
def test_a_rate_that_is_set_holds_for_each_owner(
    product, mine, theirs, settings, scope, tail
):
    addresses = {
        caller.owner: tail.format(caller.new_id()) for caller in (mine, theirs)
    }
    rates = dict.fromkeys(getattr(settings, product.setting), "")
    setattr(settings, product.setting, rates | {scope: "1/hour"})

    def send(caller):
        return caller.call("POST", addresses[caller.owner], {"url": URL})

    assert send(mine).status_code < 300
    response = send(mine)
    assert product.error(response, 429).startswith("Too many ")
    assert 0 < int(response["Retry-After"]) <= 3601
    assert send(theirs).status_code < 300
    mine.get()


# ── At one moment ───────────────────────────────────────────────────────────────────


def at_one_moment(caller, endpoint_id, *calls: Any):
    """Send calls of one subscription at once; count the pairs of method and status."""

    def sender(method, tail="", body=None):
        def send():
            address = f"/{endpoint_id}{tail}"
            return method, caller.in_thread().call(method, address, body).status_code

        return send

    return Counter(together(*[sender(*call) for call in calls]))


@pytest.mark.django_db(transaction=True)
def test_what_comes_after_a_deletion_finds_nothing_and_leaves_nothing(product, mine):
    change: Any = ("PATCH", "", {product.events: []})
    calls = [*[change, ("POST", "/test")] * 3, *[("DELETE",)] * 2]
    for _ in range(3):
        counts = at_one_moment(mine, mine.new_id(), *calls)
        assert {status for _, status in counts} - {200, 202, 204} == {404}
        assert counts["DELETE", 404] == 1
        assert not mine.endpoints.exists()
        assert not Delivery.objects.filter(status=Delivery.Status.PENDING).exists()
