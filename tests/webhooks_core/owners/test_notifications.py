"""Notices: sent once after the commit, and an error of the hook fails no caller."""

from __future__ import annotations

import pytest
from django.db import transaction

from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
)
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.profiles import Notice, NoticeKind

URL = "http://127.0.0.1:9/hook"


@pytest.fixture
def notices(use_profile) -> list[Notice]:
    received: list[Notice] = []
    use_profile(on_notice=received.append, disable_after=20)
    return received


def attempts(results) -> None:
    """Publish and answer as many events."""
    for _ in results:
        publish_event()
    dispatcher = SteppedDispatcher()
    while claimed := dispatcher.claim():
        dispatcher.record(claimed, *[results.pop(0) for _ in claimed])
    dispatcher.finish()


@pytest.mark.usefixtures("commits_at_once")
class TestNotices:
    def test_a_disabled_endpoint_once_with_its_last_error(self, notices, use_profile):
        use_profile(on_notice=notices.append, disable_after=3)
        target = EndpointFactory.create(url=URL)
        attempts([failed] * 5)
        disabled_at = Endpoint.objects.get().disabled_at
        assert notices == [
            Notice(
                kind=NoticeKind.DISABLED,
                profile="plain",
                owner="alice",
                endpoint_id=target.public_id,
                failures=3,
                error="HTTP 500",
                since=disabled_at,
                is_first=True,
            )
        ]

    def test_a_disabled_endpoint_that_gets_a_new_url(self, notices):
        target = EndpointFactory.create(url=URL)
        Endpoint.objects.update(status=2, consecutive_failures=20)
        endpoints.update(target, url=f"{URL}/new")
        endpoints.update(target, url=f"{URL}/newer")
        assert [(notice.kind, notice.failures) for notice in notices] == [
            (NoticeKind.ENABLED, 20)
        ]

    def test_a_failing_hook_is_logged_and_fails_no_caller(
        self, use_profile, capsys, caplog
    ):
        def broken(_: Notice) -> None:
            raise ValueError("hook")

        use_profile(on_notice=broken, disable_after=1)
        EndpointFactory.create(url=URL)
        attempts([failed])
        assert Endpoint.objects.get().status == Endpoint.Status.DISABLED
        assert Delivery.objects.get().attempts == 1
        assert "notice hook failed" in caplog.text + capsys.readouterr().err

    def test_a_product_without_a_hook_is_served_as_before(self, plain, caplog, capsys):
        EndpointFactory.create(url=URL)
        attempts([failed] * 3)
        assert "endpoint disabled" in caplog.text + capsys.readouterr().err


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_transaction_sends_no_notice(notices):
    target = EndpointFactory.create(url=URL)
    Endpoint.objects.update(status=2)
    with transaction.atomic():
        endpoints.update(target, url=f"{URL}/new")
        assert notices == []
        transaction.set_rollback(True)
    assert notices == []
    endpoints.update(target, url=f"{URL}/new")
    assert [notice.kind for notice in notices] == [NoticeKind.ENABLED]
