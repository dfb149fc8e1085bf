"""Pages of an endpoint's deliveries: exact, and a deep one reads no more rows than the first."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webhooks_core.factories import make_deliveries
from tests.webhooks_core.reading import rows_read, vacuum
from webhooks_core.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def page(number: int, size: int = 10) -> list[tuple[int, str]]:
    rows = Delivery.objects.filter(endpoint=Endpoint.objects.get()).page(
        number, size=size
    )
    return list(rows.values_list("replay_number", "event__type"))


@pytest.mark.skipif(connection.vendor == "sqlite", reason="reads PostgreSQL's plans")
def test_a_deep_page_reads_no_more_rows_than_it_shows():
    make_deliveries(1000)
    vacuum("webhooks_core_delivery", "webhooks_core_event")
    with CaptureQueriesContext(connection) as queries:
        assert len(page(100)) == 10
    *_, query = queries
    assert rows_read(query["sql"], "webhooks_core_delivery") == 10
    assert rows_read(query["sql"], "webhooks_core_event") <= 10
