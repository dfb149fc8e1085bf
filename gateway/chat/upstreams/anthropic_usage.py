"""The usage that Anthropic's API reports, in OpenAI's shape. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gateway.chat.tokens import count
from gateway.json import mapping, member, objects

WRITTEN, CACHED = "cache_creation_input_tokens", "cache_read_input_tokens"
COUNTS = ("input_tokens", "output_tokens", WRITTEN, CACHED)
HOUR = "ephemeral_1h_input_tokens"
THINKING = "thinking_tokens"


class MessageUsage:
    """The usage of one message, which a stream reports in parts."""

    __slots__ = ("_compacted", "_counts")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._compacted: Counter[str] = Counter()

    def begin(self, counts: Any) -> None:
        """Note the usage of a message that has only begun: its output does not count."""
        self.add(counts)
        self._counts.pop("output_tokens", None)

    def add(self, counts: Any) -> None:
        """Keep the larger numbers: they are cumulative, and some servers end with zeros."""
        for name, number in _counts(counts).items():
            self._counts[name] = max(self._counts.get(name, 0), number)
        self._compacted |= _compacted(counts)

    def as_openai(self) -> dict[str, Any]:
        """Return OpenAI's usage; the API counts cached input apart, OpenAI within the prompt.

        What the API does not say is left out, so that it is estimated.
        """
        counts = self._counts
        fresh, completion_tokens, written, cached, hour, thinking = (
            counts.get(name, 0) + self._compacted[name]
            for name in (*COUNTS, HOUR, THINKING)
        )
        prompt = fresh + written + cached
        details = {"completion_tokens_details": {"reasoning_tokens": thinking}}
        return {
            "prompt_tokens": prompt,
            **(
                {"completion_tokens": completion_tokens}
                if "output_tokens" in counts
                else {}
            ),
            "total_tokens": prompt + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": cached},
            **(details if thinking else {}),
            **({WRITTEN: written} if written else {}),
            **({"cache_creation": {HOUR: hour}} if hour else {}),
        }


def _counts(value: Any) -> dict[str, int]:
    """Return the numbers that the API reports, with those within `cache_creation` and details."""
    numbers = {
        **mapping(value),
        HOUR: member(value, "cache_creation", HOUR),
        THINKING: member(value, "output_tokens_details", THINKING),
    }
    return {
        name: count(numbers[name]) or 0
        for name in (*COUNTS, HOUR, THINKING)
        if numbers.get(name) is not None
    }


def _compacted(value: Any) -> Counter[str]:
    """Return what the API used to shorten the conversation, which its sums leave out."""
    numbers: Counter[str] = Counter()
    for iteration in objects(member(value, "iterations")):
        if iteration.get("type") == "compaction":
            numbers.update(_counts(iteration))
    return numbers
