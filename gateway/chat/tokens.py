"""The tokens of a request: as its upstream reports them, or estimated from text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from gateway.json import mapping

CHARACTERS_PER_TOKEN = 4
# The maximum of a column; an upstream that reports more is wrong.
MAX_TOKENS = 2**31 - 1
# The names of the sums and of their details, in Chat Completions and in the Responses API.
NAMES = (
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens"),
)
USUAL = ("prompt_tokens", "completion_tokens", "total_tokens")
# The fields with the text of a request, the last first; and fields without text.
PROMPT = (
    *("functions", "tools", "system", "instructions", "input", "prompt", "messages"),
)
NOT_TEXT = frozenset(
    {
        *("role", "type", "id", "index", "tool_call_id", "cache_control", "signature"),
        *("image_url", "input_audio", "file", "file_data"),
        *("thought_signature", "encrypted_content"),
        "thinking_blocks",  # their text is in reasoning_content, too
    }
)
# About how many tokens an image, a sound or a document is.
MEDIA_TOKENS = 1_500
MEDIA = frozenset(
    {
        *("image_url", "image", "input_image", "input_audio", "audio"),
        *("file", "input_file", "document"),
    }
)
# Data of Anthropic's API that is no text: of images and documents, and of hidden thinking.
NO_TEXT_TYPES = ("base64", "redacted_thinking")


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

        Gemini and xAI count reasoning in the total alone.
        """
        if not isinstance(value, dict):
            return None
        # What most servers send, in a tenth of the time.
        given: Any = map(value.get, USUAL)
        p, c, t = given
        is_usual = type(p) is type(c) is type(t) is int and len(value) == len(USUAL)
        if is_usual and 0 < c < t == p + c <= MAX_TOKENS:
            return cls(p, c)
        prompt_name, completion_name = NAMES["input_tokens" in value]
        given = value.get(completion_name)
        prompt, completion = count(value.get(prompt_name)), count(given)
        if prompt is None or completion is None or prompt_name not in value:
            return None
        completion = max(completion, (count(value.get("total_tokens")) or 0) - prompt)
        is_reported = completion > 0 or given is not None
        inputs, outputs = (
            mapping(value.get(f"{name}_details"))
            for name in (prompt_name, completion_name)
        )
        cached, written, reasoning = (
            count(details.get(name)) or 0
            for details, name in (
                (inputs, "cached_tokens"),
                (inputs, "cache_write_tokens"),
                (outputs, "reasoning_tokens"),
            )
        )
        cached = min(cached, prompt)
        return cls(
            prompt,
            completion if is_reported else None,
            cached,
            min(written, prompt - cached),
            min(reasoning, completion) if is_reported else reasoning,
        )

    def as_openai(self) -> dict[str, Any]:
        """Return the usage as Chat Completions have it."""
        completion = self.completion_tokens or 0
        reasoning = {"reasoning_tokens": self.reasoning_tokens}
        written = {"cache_creation_input_tokens": self.cache_write_tokens}
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            **(
                {"completion_tokens_details": reasoning}
                if self.reasoning_tokens
                else {}
            ),
            **(written if self.cache_write_tokens else {}),
        }

    def with_completion(self, tokens: int) -> Usage:
        """Return the usage with an estimate of the completion."""
        return replace(self, completion_tokens=max(tokens, self.reasoning_tokens))

    def at_least(self, earlier: Usage | None) -> Usage:
        """Return the larger numbers of a stream: they are cumulative, and some end with zeros."""
        if earlier is None:
            return self
        pairs = zip(_numbers(earlier), _numbers(self), strict=True)
        return Usage(
            *(b if a is None else a if b is None else max(a, b) for a, b in pairs)
        )


_numbers = attrgetter(*(field.name for field in fields(Usage)))


def count(value: Any) -> int | None:
    """Return a number of tokens, 0 for null, None for an invalid value."""
    if value is None:
        return 0
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= MAX_TOKENS else None


def estimate(characters: int) -> int:
    """Return about how many tokens a text of this length has, rounded up."""
    return min(-(-characters // CHARACTERS_PER_TOKEN), MAX_TOKENS)


def prompt_length(body: Mapping[str, Any]) -> int:
    """Return how many characters of text a request holds; a token that is no text counts 4.

    Integers are tokens, as embeddings take them; images, sound and documents are about as many.
    """
    total, left = 0, [body[name] for name in PROMPT if name in body]
    while left:
        item = left.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, list):
            left += item
        elif isinstance(item, dict):
            kind = item.get("type")
            if isinstance(kind, str) and kind in MEDIA:
                total += CHARACTERS_PER_TOKEN * MEDIA_TOKENS
            if kind not in NO_TEXT_TYPES:
                left += [inner for name, inner in item.items() if name not in NOT_TEXT]
        elif isinstance(item, int) and not isinstance(item, bool):
            total += CHARACTERS_PER_TOKEN
    return total
