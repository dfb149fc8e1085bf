"""How PostgreSQL stores the rows that the engine updates most."""

import pytest
from django.db import connection, transaction

from tests.webhooks_core.factories import make_deliveries
from webhooks_core.dispatch import sql
from webhooks_core.models import Delivery

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("plain"),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="PostgreSQL's storage"),
]


def test_claims_of_scattered_rows_write_no_index():
    make_deliveries(1000)
    pks = list(Delivery.objects.order_by("pk").values_list("pk", flat=True))[::6]
    with transaction.atomic(), connection.cursor() as cursor:
        assert sql.claim(pks, lease=1) == len(pks)
        cursor.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables"
            " WHERE relname = 'webhooks_core_delivery'"
        )
        assert cursor.fetchone() == (len(pks), len(pks))


def test_public_ids_have_one_index_each():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename, count(*) FROM pg_indexes WHERE indexdef LIKE '%(public_id%'"
            " AND tablename LIKE 'webhooks_core_%' GROUP BY tablename ORDER BY tablename"
        )
        assert [count for _, count in cursor.fetchall()] == [1] * 3


def test_bodies_are_compressed_with_lz4():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attcompression FROM pg_attribute"
            " WHERE attrelid = 'webhooks_core_event'::regclass AND attname = 'body'"
        )
        assert cursor.fetchone() == ("l",)
