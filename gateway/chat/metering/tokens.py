"""The tokens of a request: as its upstream reports them, or estimated from text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CHARACTERS_PER_TOKEN = 4
# The maximum of a column; an upstream that reports more is wrong.
MAX_TOKENS = 2**31 - 1
SUMS = ("prompt_tokens", "completion_tokens")
# The limit of an estimate's work.
MAX_PARTS = 100_000
# The fields with the text of a request, the last first; and fields without text.
PROMPT = ("functions", "tools", "system", "input", "prompt", "messages")
NOT_TEXT = frozenset(
    {
        *("role", "type", "id", "index", "tool_call_id", "cache_control", "signature"),
        *("image_url", "input_audio", "file"),
        "thinking_blocks",  # their text is in reasoning_content, too
    }
)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a request.

    The prompt's include those read from and written to the cache, the completion's those of
    reasoning. `completion_tokens` is None until the upstream reports it.
    """

    prompt_tokens: int
    completion_tokens: int | None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @classmethod
    def read(cls, value: Any) -> Usage | None:
        """Return an upstream's `usage`, or None if its numbers are not valid.

        The details are OpenAI's, or under Anthropic's names beside the sums.
        """
        if not isinstance(value, dict) or value.keys().isdisjoint(SUMS):
            return None
        prompt = count(value.get("prompt_tokens", 0))
        completion = count(value.get("completion_tokens", 0))
        if prompt is None or completion is None:
            return None
        inputs, outputs = (
            _mapping(value.get(name))
            for name in ("prompt_tokens_details", "completion_tokens_details")
        )
        cached = count(inputs.get("cached_tokens")) or count(
            value.get("cache_read_input_tokens")
        )
        written = count(inputs.get("cache_write_tokens")) or count(
            value.get("cache_creation_input_tokens")
        )
        cached = min(cached or 0, prompt)
        return cls(
            prompt,
            completion,
            cached,
            min(written or 0, prompt - cached),
            min(count(outputs.get("reasoning_tokens")) or 0, completion),
        )


def count(value: Any) -> int | None:
    """Return a number of tokens, 0 for null, None for an invalid value."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_TOKENS else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def estimate(characters: int) -> int:
    """Return about how many tokens a text of this length has, rounded up."""
    return min(-(-characters // CHARACTERS_PER_TOKEN), MAX_TOKENS)


def prompt_length(body: Mapping[str, Any]) -> int:
    """Return how many characters of text a request holds."""
    return text_length([body.get(name) for name in PROMPT])


def text_length(value: Any) -> int:
    """Return how many characters of text the first MAX_PARTS parts of JSON hold."""
    total, looked_at, left = 0, 0, [value]
    while left and looked_at < MAX_PARTS:
        looked_at += 1
        item = left.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, list):
            left += item
        elif isinstance(item, dict):
            left += [inner for name, inner in item.items() if name not in NOT_TEXT]
    return total
