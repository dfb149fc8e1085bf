"""Trace ids: taken from a valid traceparent, otherwise made."""

import re

import pytest

from gateway.trace_ids import trace_id

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("traceparent", "is_valid"),
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"cc-{TRACE}-{PARENT}-01", True),
        (f"cc-{TRACE}-{PARENT}-01-what-is-to-come", True),
        (None, False),
        ("nonsense", False),
        (f"00-{TRACE}-{PARENT}", False),
        (f"00-{TRACE}-{PARENT}-01-more", False),
        (f"ff-{TRACE}-{PARENT}-01", False),
        (f"00-{'0' * 32}-{PARENT}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{PARENT}-01", False),
        (f"00-{TRACE}-{PARENT}-01\n", False),
    ],
)
def test_a_valid_traceparent_gives_the_trace_and_others_a_new_one(
    traceparent, is_valid
):
    trace_ids = {trace_id(traceparent) for _ in range(3)}
    assert (trace_ids == {TRACE}) is is_valid
    assert is_valid or (len(trace_ids) == 3 and TRACE not in trace_ids)
    assert all(re.fullmatch(r"[0-9a-f]{32}", each) for each in trace_ids)
