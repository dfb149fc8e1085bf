"""Trace ids: taken from a valid traceparent, otherwise made."""

import re

import pytest

from gateway.trace_ids import trace_id

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "traceparent",
    [
        f"00-{TRACE}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01-what-is-to-come",
    ],
)
def test_a_valid_traceparent_gives_the_trace(traceparent):
    assert trace_id(traceparent) == TRACE


@pytest.mark.parametrize(
    "traceparent",
    [
        None,
        "nonsense",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-01-more",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01\n",
    ],
)
def test_anything_else_gives_a_new_trace_each_time(traceparent):
    trace_ids = {trace_id(traceparent) for _ in range(3)}
    assert len(trace_ids) == 3
    assert TRACE not in trace_ids
    assert all(re.fullmatch(r"[0-9a-f]{32}", item) for item in trace_ids)
