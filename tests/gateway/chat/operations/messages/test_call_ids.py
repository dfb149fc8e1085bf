"""Ids of calls: each id of an upstream has one of the client's, and the way back."""

from __future__ import annotations

import re

import pytest

from gateway.chat.operations.carried import Carrier
from gateway.chat.operations.messages.call_ids import CallIds, decoded, encoded

ACCEPTED = re.compile(r"toolu_[A-Za-z0-9_-]+")
ODD = ["call_1", "functions.tide:0", "n0_x", "n1_Y2FsbA", "toolu_1", "x y", "漢", "-", "\ud83d"]  # fmt: skip


def test_every_id_comes_back_as_it_was_and_no_two_are_the_same():
    made = {encoded(key, number): key for key in ODD for number in range(3)}
    assert len(made) == 3 * len(ODD)
    for client_id, key in made.items():
        assert ACCEPTED.fullmatch(client_id)
        assert decoded(client_id) == key


@pytest.mark.parametrize(
    ("foreign", "key"),
    [("toolu_01A09q", "01A09q"), ("call_1", "call_1"), ("toolu_n0_!", "n0_!"), ("toolu_n0_A", "n0_A"), ("toolu_n0__w", "n0__w")],
)  # fmt: skip
def test_an_id_that_was_not_made_here_is_kept(foreign, key):
    assert decoded(foreign) == key


def test_ids_that_begin_again_in_each_turn_differ_for_the_client():
    """A client finds results by the id of their call, over the whole conversation."""
    ids = CallIds()
    first, second = ids.new("functions.tide:0"), ids.new("functions.tide:0")
    assert first != second

    later = CallIds()
    sent_back = [later.sent_back(each) for each in (first, second)]
    assert sent_back == [("functions.tide:0", {})] * 2
    assert later.new("functions.tide:0") not in {first, second}


def test_what_belongs_to_a_call_goes_back_to_its_endpoint_alone():
    """Gemini refuses a call without the signature of its thought."""
    extra = {"google": {"thought_signature": "c2ln"}}
    ids = CallIds(Carrier("gemini"))
    client_id = ids.new("call_1", extra)
    assert ACCEPTED.fullmatch(client_id)
    assert ids.sent_back(client_id) == ("call_1", {"extra_content": extra})
    assert ids.own(client_id) == "call_1"
    assert CallIds(Carrier("other")).sent_back(client_id) == ("call_1", {})


def test_calls_without_an_id_get_one():
    ids = CallIds()
    assert len({ids.new(""), ids.new("")}) == 2
