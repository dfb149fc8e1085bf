"""Whatever fits or breaks the OpenAPI document is answered as the document says."""

from __future__ import annotations

import pytest

from tests.fuzzing import DESCRIBED, assert_as_described, bounded
from webhooks_core.models import Endpoint

OURS = DESCRIBED.include(path_regex=r"^/v1/webhook(?!s/subscriptions)")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_resolver")
@OURS.parametrize()
@bounded
def test_a_response_is_as_documented(api, case):
    mine = Endpoint.objects.of("recording", api.owner)

    def existing() -> str:
        endpoint_id = mine.values_list("public_id", flat=True).first()
        return endpoint_id or api.create()["endpoint_id"]

    token = {"Authorization": f"Bearer {api.token}"}
    assert_as_described(case, existing=existing, headers=token)
