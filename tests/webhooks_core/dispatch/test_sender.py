"""The sender: limits per lane, giving back, and the signal that all is done."""

from __future__ import annotations

import threading

import pytest

from tests.receiver import receiver
from webhooks_core.dispatch import sender as module
from webhooks_core.dispatch.sender import Sender
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.transport import AttemptResult, OutgoingRequest
from webhooks_core.outcomes import Outcome


def request(key: int, url: str, *, lane: int = 1, limit: int = 4, timeout_s=2.0):
    return OutgoingRequest(
        key=key,
        queue=lane,
        limit=limit,
        url=url,
        body=b"{}",
        sign=lambda _: {"Content-Type": "application/json"},
        timeout_s=timeout_s,
        networks=AllowedNetworks(loopback=True),
    )


def collect(sender: Sender, count: int) -> list[AttemptResult]:
    answers: list[AttemptResult] = []
    for _ in range(500):
        answers += sender.collect(wait_s=0.02)
        if len(answers) >= count:
            return answers
    raise AssertionError(f"{len(answers)} of {count} answers")


def test_each_request_gives_exactly_one_answer(monkeypatch):
    monkeypatch.setattr(module, "STALE_AFTER_S", 60)
    with receiver(204) as it, Sender() as sender:
        sender.submit([request(key, it.url, lane=key % 3) for key in range(30)])
        answers = collect(sender, 30)
        assert sender.collect(wait_s=0.1) == []
    assert sorted(answer.key for answer in answers) == list(range(30))
    assert {answer.outcome for answer in answers} == {Outcome.OK}


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_lane_never_has_more_in_flight_than_its_limit(limit):
    with receiver(204, delay=0.01) as it, Sender() as sender:
        for part in range(4):
            sender.submit(
                [request(10 * part + n, it.url, limit=limit) for n in range(10)]
            )
        collect(sender, 40)
    assert it.peak == limit


def test_all_lanes_together_have_a_limit_too_and_all_get_their_turn(monkeypatch):
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 3)
    with receiver(204, delay=0.01) as it, Sender() as sender:
        sender.submit([request(n, it.url, lane=n % 6) for n in range(36)])
        answers = collect(sender, 36)
    assert it.peak <= 3
    assert {answer.key % 6 for answer in answers[:12]} == set(range(6))


def test_what_waits_behind_a_time_out_is_given_back_untried():
    with receiver(204, delay=1) as it, Sender() as sender:
        sender.submit([request(n, it.url, limit=1, timeout_s=0.1) for n in range(5)])
        answers = collect(sender, 5)
    outcomes = [answer.outcome for answer in sorted(answers, key=lambda it: it.key)]
    assert outcomes == [Outcome.TIMEOUT, None, None, None, None]
    assert len(it.requests) == 1


def test_withdrawing_gives_back_what_was_not_started_only():
    with receiver(204, delay=0.3) as it, Sender() as sender:
        sender.submit([request(n, it.url, limit=1) for n in range(4)])
        for _ in range(100):
            if it.requests:
                break
            threading.Event().wait(0.02)
        sender.release_unstarted()
        answers = collect(sender, 4)
    assert sorted(str(answer.outcome) for answer in answers) == [
        "None",
        "None",
        "None",
        "ok",
    ]
    assert len(it.requests) == 1


def test_a_lane_that_ends_while_more_is_submitted_does_not_say_that_all_is_done():
    """Otherwise the drain would ask without a pause until that work has ended."""

    class Racing(threading.Event):
        def clear(self) -> None:
            super().clear()
            if threading.current_thread() is threading.main_thread():
                self.set()  # the last lane ends just now, in the other thread

    with receiver(204, delay=0.5) as it, Sender() as sender:
        sender._idle = Racing()
        sender.submit([request(1, it.url)])
        for _ in range(100):
            if it.requests:
                break
            threading.Event().wait(0.02)
        assert not sender._idle.is_set()
        collect(sender, 1)


def test_leaving_cancels_what_is_open_and_leaves_no_thread():
    before = threading.active_count()
    with receiver(204, delay=0.2) as it:
        with Sender() as sender:
            sender.submit([request(1, it.url)])
        assert not sender._thread.is_alive()
    assert threading.active_count() <= before + 1


def test_one_that_must_start_at_once_is_given_its_chance_while_all_are_slow(
    monkeypatch,
):
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 2)
    with receiver(204, delay=0.5) as slow, receiver(204) as quick, Sender() as sender:
        sender.submit([request(n, slow.url, lane=n) for n in range(2)])
        paced = request(2, quick.url, lane=2)._replace(immediate=True)
        sender.submit([paced])
        answers = collect(sender, 3)
    assert [it.outcome for it in answers if it.key == 2] == [Outcome.OK]
