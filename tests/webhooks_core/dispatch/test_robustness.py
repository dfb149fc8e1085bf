"""One bad row, name or server does not take the others along."""

import io
import socket
import threading
from datetime import timedelta

import pytest
from django.core import serializers
from django.core.management import call_command
from django.core.serializers.base import DeserializationError
from django.db import DataError
from django.utils import timezone

from config.environment import with_query
from tests.receiver import receiver
from tests.running import PATIENCE_S
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_events
from webhooks_core import endpoints
from webhooks_core.dispatch import sql
from webhooks_core.models import (
    Delivery,
    Endpoint,
    EndpointQueue,
    EndpointSecret,
)
from webhooks_core.network.addresses import ThreadPerTask


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("plain")
class TestBadRow:
    def test_a_result_that_cannot_be_written_ends_the_run_as_a_death_of_its_process(
        self, monkeypatch
    ):
        """So the delivery is tried again with growing pauses, and ends if it is the cause."""

        def insert_attempts(_: object) -> None:
            raise DataError("bad row")

        monkeypatch.setattr(sql, "insert_attempts", insert_attempts)
        with receiver(204) as server:
            EndpointFactory.create(url=server.url)
            publish_events(1)
            with pytest.raises(DataError):
                dispatch()
        delivery = Delivery.objects.get()
        assert (delivery.claimed_by, delivery.interruptions) == (None, 1)
        assert not EndpointQueue.objects.exclude(leased_by=None).exists()

    def test_an_endpoint_whose_claim_fails_delays_no_other(self, monkeypatch):
        real, asked = sql.due_deliveries, []
        with receiver(204) as server:
            bad = EndpointFactory.create(url=server.url)
            EndpointFactory.create(url=server.url)

            def broken_for_one(limits, now):
                asked.append(limits)
                if bad.pk in limits:
                    raise DataError("bad row")
                return real(limits, now)

            monkeypatch.setattr(sql, "due_deliveries", broken_for_one)
            publish_events(3)
            assert dispatch() == 3
            assert len(asked) < 20  # not again and again
            queue = EndpointQueue.objects.get(pk=bad.pk)
            assert queue.next_due_at is not None
            assert queue.next_due_at > timezone.now() + timedelta(seconds=30)
            monkeypatch.setattr(sql, "due_deliveries", real)
            EndpointQueue.objects.update(next_due_at=timezone.now())
            assert dispatch() == 3


@pytest.mark.django_db(transaction=True)
class TestNamesThatHang:
    def test_a_lack_of_threads_is_a_local_failure(self, monkeypatch):
        def start(_: object) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", start)
        threads = ThreadPerTask(most=1)
        for _ in range(2):
            with pytest.raises(socket.gaierror) as caught:
                threads.submit(int).result(PATIENCE_S)
            assert caught.value.errno == socket.EAI_MEMORY
        monkeypatch.undo()
        assert threads.submit(int).result(PATIENCE_S) == 0


@pytest.mark.django_db
@pytest.mark.usefixtures("plain", "commits_at_once")
class TestDumps:
    def test_a_secret_survives_a_dump(self, tmp_path):
        target = endpoints.set_custom_headers(
            EndpointFactory.create(), {"X-Key": "hidden"}
        )
        [secret] = target.secrets(now=timezone.now())
        file = tmp_path / "dump.json"
        tables = ["webhooks_core.endpoint", "webhooks_core.endpointsecret"]
        call_command("dumpdata", *tables, output=str(file))
        text = file.read_text()
        assert secret not in text
        assert "hidden" not in text
        assert "•" not in text
        Endpoint.objects.all().delete()
        call_command("loaddata", str(file), stdout=io.StringIO())
        again = Endpoint.objects.get()
        assert again.secrets(now=timezone.now()) == [secret]
        assert "hidden" in again.custom_headers.decrypt()

    @pytest.mark.parametrize("value", ["whsec_••••••••", "whsec_plain", ""])
    def test_a_text_that_is_not_a_ciphertext_is_refused(self, value):
        target = EndpointFactory.create()
        fields = {"endpoint": target.pk, "value": value}
        row = {"model": "webhooks_core.endpointsecret", "pk": 9, "fields": fields}
        with pytest.raises(DeserializationError, match="ciphertext"):
            list(serializers.deserialize("python", [row]))
        assert EndpointSecret.objects.count() == 1


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h/0", "redis://h/0?socket_timeout=4"),
        ("redis://h/0?db=1", "redis://h/0?db=1&socket_timeout=4"),
        ("redis://h/0?socket_timeout=9", "redis://h/0?socket_timeout=9"),
        ("rediss://u:p%40@h:1/0", "rediss://u:p%40@h:1/0?socket_timeout=4"),
    ],
)
def test_options_join_a_url_that_does_not_name_them(url, expected):
    assert with_query(url, {"socket_timeout": 4}) == expected
