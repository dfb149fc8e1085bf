"""An owner's share of slots, claims, bytes and queues: none waits for another's time-outs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhooks_core.dispatch.stepped_dispatcher import SteppedDispatcher
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.dispatch import claims
from webhooks_core.dispatch.shares import Shares

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")

ALICE, BOB = ("plain", "alice"), ("plain", "bob")


def add_endpoints(owner: str, count: int, url: str = "http://127.0.0.1:9/") -> None:
    for number in range(count):
        EndpointFactory.create(owner=owner, url=f"{url}{number}")


def test_an_owner_alone_leaves_a_quarter_and_a_contender_gets_no_more_than_a_quarter():
    shares = Shares(384)
    assert shares.room(ALICE, is_contended=False) == 384
    shares.add(ALICE, 384)
    assert shares.room(ALICE, is_contended=False) == 0
    assert shares.room(BOB, is_contended=True) == 64
    shares.add(ALICE, -300)
    assert shares.room(ALICE, is_contended=True) == 44  # up to a quarter
    assert shares.room(BOB, is_contended=True) == 128


@given(
    most=st.integers(1, 600),
    turns=st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=60),
)
def test_a_newcomer_finds_room_unless_nothing_is_free(most, turns):
    shares = Shares(most)
    total = shares.total
    used = 0
    for owner, is_contended in turns:
        room = shares.room(("plain", str(owner)), is_contended=is_contended)
        shares.add(("plain", str(owner)), room)
        used += room
        assert used <= total
        newcomer = shares.room(("plain", "newcomer"), is_contended=is_contended)
        assert used == total or newcomer > 0


def test_large_bodies_of_one_owner_leave_bytes_for_another(monkeypatch):
    size = publish_event("nobody").size
    monkeypatch.setattr(claims, "MAX_BYTES", 6 * size)
    add_endpoints("alice", 5)
    add_endpoints("bob", 1)
    for _ in range(4):
        publish_event("alice")
    dispatcher = SteppedDispatcher()
    assert len(dispatcher.claim()) == 6
    publish_event("bob")
    assert [request.owner for request in dispatcher.claim()] == [BOB]
