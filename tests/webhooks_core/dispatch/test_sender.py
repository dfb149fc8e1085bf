"""The sender: limits per queue, releases, and the signal that all is done."""

import threading
from functools import partial
from typing import Any

import pytest

from tests.receiver import receiver
from tests.running import until
from tests.webhooks_core.network.hostile import request_to
from webhooks_core.dispatch import sender as module
from webhooks_core.dispatch.sender import Sender
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import AttemptResult, OutgoingRequest


def request(
    key: int, url: str, *, queue: int = 1, limit: int = 4, **fields: Any
) -> OutgoingRequest:
    return request_to(url, **fields)._replace(key=key, queue=queue, limit=limit)


def collect(sender: Sender, count: int) -> list[AttemptResult]:
    results: list[AttemptResult] = []

    def has_all() -> bool:
        results.extend(sender.collect(wait_s=0.02))
        return len(results) >= count

    until(has_all, f"{count} results")
    return results


def test_each_request_has_exactly_one_result(monkeypatch):
    monkeypatch.setattr(module, "STALE_AFTER_S", 60)
    with receiver(204) as server, Sender() as sender:
        sender.submit([request(key, server.url, queue=key % 3) for key in range(30)])
        results = collect(sender, 30)
        assert sender.collect(wait_s=0.1) == []
    assert sorted(result.key for result in results) == list(range(30))
    assert {result.outcome for result in results} == {Outcome.OK}


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_queue_never_has_more_in_flight_than_its_limit(limit):
    with receiver(204, is_open=False) as server, Sender() as sender:
        for part in range(4):
            sender.submit(
                [request(10 * part + n, server.url, limit=limit) for n in range(10)]
            )
        until(lambda: server.open == limit, "as many as may be")
        server.gate.set()
        collect(sender, 40)
    assert server.peak == limit


def test_all_queues_together_have_a_limit_too_and_all_get_their_turn(monkeypatch):
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 3)
    begun: list[int] = []

    def sign(queue: int, _timestamp: int) -> dict[str, str]:
        begun.append(queue)
        return {}

    with receiver(204, delay=0.01) as server, Sender() as sender:
        sender.submit(
            [
                request(n, server.url, queue=n % 6)._replace(sign=partial(sign, n % 6))
                for n in range(36)
            ]
        )
        collect(sender, 36)
    assert server.peak <= 3
    assert set(begun[:12]) == set(range(6))


def test_requests_that_wait_behind_a_time_out_are_released():
    with receiver(204, is_open=False) as server, Sender() as sender:
        sender.submit(
            [request(n, server.url, limit=1, timeout_s=0.1) for n in range(5)]
        )
        results = collect(sender, 5)
    first, *rest = sorted(results, key=lambda result: result.key)
    # A slow machine may need longer than that for the connection.
    assert first.outcome in {Outcome.TIMEOUT, Outcome.CONNECT}
    assert [result.outcome for result in rest] == 4 * [None]
    assert len(server.requests) <= 1


def test_a_request_that_has_waited_too_long_is_released(monkeypatch):
    monkeypatch.setattr(module, "STALE_AFTER_S", -1)
    with receiver(204) as server, Sender() as sender:
        sender.submit([request(1, server.url)])
        [result] = collect(sender, 1)
    assert (result.outcome, result.error, server.requests) == (None, "", [])


def test_a_queue_that_ends_while_more_is_submitted_does_not_signal_that_all_is_done():
    """Otherwise the dispatcher would poll without a pause until that work has ended."""

    class Racing(threading.Event):
        def clear(self) -> None:
            super().clear()
            if threading.current_thread() is threading.main_thread():
                self.set()  # the last queue ends just now, in the other thread

    with receiver(204, is_open=False) as server, Sender() as sender:
        sender._idle = Racing()
        sender.submit([request(1, server.url)])
        until(lambda: server.requests, "the request")
        assert not sender._idle.is_set()
        server.gate.set()
        collect(sender, 1)


def test_closing_cancels_open_requests_and_leaves_no_thread():
    before = threading.active_count()
    with receiver(204, is_open=False) as server:
        with Sender() as sender:
            sender.submit([request(1, server.url)])
        assert not sender._thread.is_alive()
    assert threading.active_count() <= before + 1
