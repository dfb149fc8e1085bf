"""What may be claimed while results wait to be written: a dispatcher claims first, and then writes."""

from __future__ import annotations

import pytest

from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
    ok,
)
from tests.webhooks_core.factories import EndpointFactory, publish_events
from webhooks_core.dispatch import results
from webhooks_core.models import Attempt, EndpointQueue

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")


class Noting(SteppedDispatcher):
    """Notes how many requests it submits, and how many results were written before."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, int]] = []
        super().__init__(
            lambda _, requests: self.noted.append(
                (len(requests), Attempt.objects.count())
            )
        )


@pytest.mark.parametrize(
    ("limits", "answer", "noted"),
    [
        ({}, ok, [(2, 0), (4, 0)]),  # the window has doubled
        ({}, failed, [(2, 0), (2, 2)]),
    ],
)
def test_only_successes_without_exact_limits_let_more_be_claimed_before_they_are_written(
    limits, answer, noted
):
    EndpointFactory.create(max_in_flight=1, **limits)
    publish_events(6)
    dispatcher = Noting()
    dispatcher.record(dispatcher.claim(), answer)
    assert dispatcher.noted == noted


@pytest.mark.parametrize(
    ("limits", "answer"),
    [({}, failed)],
)
def test_a_queue_claims_more_after_each_result_that_it_waits_for(
    use_profile, limits, answer
):
    use_profile(disable_after=None)
    EndpointFactory.create(max_in_flight=4, **limits)
    publish_events(30)
    dispatcher = Noting()
    dispatcher.work()
    for _ in range(20):
        for request in dispatcher.open[:1]:
            dispatcher.sender.answer(request, answer)
        dispatcher.work()
    first, *others = [count for count, _ in dispatcher.noted]
    # A window of which more than half is left claims nothing, unless it claims exactly.
    assert sum(others) >= 8
    assert max(others) <= max(first // 2, 1)


def test_a_queue_with_unwritten_results_is_not_released(monkeypatch):
    real, leased_by = results.record_results, []

    def record_results(lease, ended, *, now):
        leased_by.append(EndpointQueue.objects.get().leased_by)
        return real(lease, ended, now=now)

    monkeypatch.setattr(results, "record_results", record_results)
    EndpointFactory.create()
    publish_events(1)
    dispatcher = SteppedDispatcher()
    [request] = dispatcher.claim()
    dispatcher.sender.answer(request, ok)
    dispatcher.work()  # receives it
    dispatcher.finish()
    assert leased_by == [dispatcher.lease.pk]
    assert EndpointQueue.objects.get().leased_by is None
