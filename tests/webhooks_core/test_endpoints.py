"""What is done to endpoints: quota, change of url, deletion, rotation."""

from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.utils import timezone

from tests.clock import travel
from tests.webhooks_core.dispatch.stepped_dispatcher import SteppedDispatcher, failed
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import endpoints
from webhooks_core.dispatch import claims
from webhooks_core.models import Delivery, Endpoint, EndpointQueue

pytestmark = pytest.mark.usefixtures("plain")
at_once = pytest.mark.usefixtures("commits_at_once")

URL, OTHER = "http://127.0.0.1:9/hook", "http://127.0.0.1:9/other"


@at_once
class TestQuota:
    def test_a_conflict_that_is_not_a_race_is_an_error(self):
        EndpointFactory.create(url=URL, static_key="one")
        with pytest.raises(IntegrityError):
            EndpointFactory.create(url=URL, static_key="one")
        assert Endpoint.objects.count() == 1


@at_once
class TestChangeOfUrl:
    @pytest.mark.spec("recording", "url actually changed")
    @pytest.mark.parametrize(
        ("before", "url", "after"),
        [
            ((2, 20), OTHER, (1, 0)),  # enabled
            ((2, 20), URL, (2, 20)),
            ((1, 7), OTHER, (1, 7)),
        ],
    )
    def test_another_url_enables_a_disabled_endpoint_as_it_is_by_now(
        self, before, url, after
    ):
        """It may have been disabled between the reading and the change."""
        read_before = EndpointFactory.create(url=URL)
        status, count = before
        Endpoint.objects.update(status=status, consecutive_failures=count)
        changed = endpoints.update(read_before, url=url, event_types=["thing.lost"])
        assert (changed.status, changed.consecutive_failures) == after
        assert (changed.url, changed.event_types) == (url, ["thing.lost"])

    def test_waiting_deliveries_of_an_enabled_endpoint_are_due_at_once(self, calls):
        target = EndpointFactory.create(url=URL)
        publish_event()
        dispatcher = SteppedDispatcher()
        dispatcher.attempt(failed)
        dispatcher.finish()
        Endpoint.objects.update(status=Endpoint.Status.DISABLED)
        calls.clear()
        endpoints.update(target, url=OTHER)
        assert calls == ["webhooks_core.tasks.dispatch"]
        assert [request.url for request in SteppedDispatcher().claim()] == [OTHER]


@at_once
class TestDeletion:
    def test_a_claimed_delivery_ends_with_its_attempt(self):
        target = EndpointFactory.create(url=URL)
        publish_event()
        dispatcher = SteppedDispatcher()
        [request] = dispatcher.claim()
        endpoints.delete(target)
        assert only_delivery().status == Delivery.Status.PENDING
        dispatcher.record([request], failed)
        with travel(timezone.now() + timedelta(seconds=61)):
            assert dispatcher.claim() == []
        assert (only_delivery().status, only_delivery().last_error) == (
            2,
            "endpoint deleted",
        )

    def test_other_endpoints_keep_theirs(self):
        target, other = (
            EndpointFactory.create(url=URL),
            EndpointFactory.create(url=OTHER),
        )
        publish_event()
        endpoints.delete(target)
        assert Delivery.objects.get(endpoint=other).status == Delivery.Status.PENDING


@at_once
class TestRotation:
    def secrets(self, target: Endpoint, **later: float) -> list[str]:
        fresh = Endpoint.objects.get(pk=target.pk)
        return fresh.secrets(now=timezone.now() + timedelta(**later))

    @pytest.mark.spec("recording", "a rotation signs with the new secret immediately")
    def test_where_one_secret_signs_there_is_no_overlap(self, use_profile):
        use_profile(signature_scheme="sha256")
        target = EndpointFactory.create(url=URL)
        new = endpoints.rotate_secret(target, overlap=timedelta(hours=1))
        assert self.secrets(target) == [new]

    @pytest.mark.parametrize(("one", "other"), [(1, 5), (24, 1)])
    def test_an_overlap_is_not_prolonged_by_another_rotation(self, one, other):
        """Nor does an older secret outlive the overlap of the newest."""
        target = EndpointFactory.create(url=URL)
        [first] = self.secrets(target)
        second = endpoints.rotate_secret(target, overlap=timedelta(hours=one))
        third = endpoints.rotate_secret(target, overlap=timedelta(hours=other))
        assert self.secrets(target) == [third, second, first]
        assert (second in self.secrets(target, hours=2)) == (other > 2)
        assert self.secrets(target, hours=other + 0.01) == [third]

    def test_a_given_secret_is_used(self):
        target = EndpointFactory.create(url=URL)
        assert endpoints.rotate_secret(target, secret="mine") == "mine"
        assert self.secrets(target) == ["mine"]

    @pytest.mark.parametrize("secret", [" ", "whsec_", "whsec_\n"])
    def test_an_empty_secret_is_refused_and_changes_nothing(self, secret):
        target = EndpointFactory.create(url=URL)
        before = self.secrets(target)
        with pytest.raises(ValueError, match="the secret is empty"):
            endpoints.rotate_secret(target, secret=secret)
        assert self.secrets(target) == before


@at_once
class TestReturn:
    def test_a_delivery_published_after_a_return_to_activity_does_not_fail(
        self, use_profile, monkeypatch
    ):
        """As when a dispatcher has read the endpoint while it was inactive."""
        use_profile(inactive_fails_pending=True)
        target = EndpointFactory.create(url=URL, active=False)
        EndpointQueue.objects.update(next_due_at=timezone.now())

        def activate(endpoint: Endpoint) -> bool:
            endpoints.update(target, active=True)
            publish_event()
            return fail(endpoint)

        fail = claims._fail_what_may_not_wait
        monkeypatch.setattr(claims, "_fail_what_may_not_wait", activate)
        SteppedDispatcher().claim()
        assert only_delivery().status == Delivery.Status.PENDING
