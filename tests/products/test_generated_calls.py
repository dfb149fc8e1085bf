"""Calls made up from the OpenAPI document: the answers of both products keep to it."""

import pytest

from tests.fuzzing import DESCRIBED, assert_as_described, bounded
from tests.products.product import GATEWAY, of_account

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_resolver"),
]


def existing(caller):
    """Return the id of a subscription that exists."""
    row = caller.endpoints.first()
    return row.public_id if row else caller.new_id()


@DESCRIBED.include(path_regex=r"^/v1/webhook(?!s/subscriptions)").parametrize()
@bounded
def test_a_response_of_recording_is_as_documented(api, case):
    caller = of_account(api)
    token = {"Authorization": f"Bearer {api.token}"}
    assert_as_described(case, existing=lambda: existing(caller), headers=token)


@DESCRIBED.include(
    path_regex=r"^/v1/(webhooks/subscriptions|ingest|usage|keys)"
).parametrize()
@bounded
def test_a_response_of_the_gateway_is_as_documented(case):
    caller = GATEWAY.caller("acme")
    identity = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
    assert_as_described(case, existing=lambda: existing(caller), headers=identity)
