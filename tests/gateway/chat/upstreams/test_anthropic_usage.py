"""The usage of Anthropic's API: what its sums leave out counts too."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.chat.tokens import Usage
from gateway.chat.upstreams.anthropic_usage import MessageUsage

# As the API's page about compaction has it.
COMPACTED: dict[str, Any] = {
    "input_tokens": 23_000,
    "output_tokens": 1000,
    "iterations": [
        {
            "type": "compaction",
            "input_tokens": 30_000,
            "cache_read_input_tokens": 150_000,
            "output_tokens": 3500,
        },
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1000},
    ],
}


def test_shortening_the_conversation_is_counted():
    usage = MessageUsage()
    usage.add(COMPACTED)
    assert Usage.read(usage.as_openai()) == Usage(203_000, 4500, cached_tokens=150_000)


def test_a_stream_that_repeats_its_numbers_counts_them_once():
    usage = MessageUsage()
    usage.begin({"input_tokens": 23_000, "output_tokens": 1})
    usage.add(COMPACTED)
    usage.add({"output_tokens": 1000, "iterations": COMPACTED["iterations"]})
    assert Usage.read(usage.as_openai()) == Usage(203_000, 4500, cached_tokens=150_000)


@pytest.mark.parametrize("iterations", [None, 1, [1], [{"type": "fallback_message", "input_tokens": 9}], [{"type": "compaction", "input_tokens": -1}]])  # fmt: skip
def test_other_iterations_count_nothing_more(iterations):
    usage = MessageUsage()
    usage.add({"input_tokens": 5, "output_tokens": 2, "iterations": iterations})
    assert Usage.read(usage.as_openai()) == Usage(5, 2)
