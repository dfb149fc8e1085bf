"""The tokens of a request: as its upstream reports them, or estimated from text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from gateway.json import mapping

CHARACTERS_PER_TOKEN = 4
# The maximum of a column; an upstream that reports more is wrong.
MAX_TOKENS = 2**31 - 1
CACHED = ("cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens")
WRITTEN = (
    "cache_write_tokens",
    "cache_creation_tokens",
    "cache_creation_input_tokens",
)
# The limit of an estimate's work.
MAX_PARTS = 1_000_000
# About what an image or the least of another medium is, and the characters of base64 per token.
MEDIA_TOKENS, MEDIA_CHARACTERS = 1_500, 100
# The fields with the text of a request, the last first; and fields without text.
PROMPT = (
    *("functions", "tools", "system", "instructions", "input", "prompt", "messages"),
)
NOT_TEXT = frozenset(
    {
        *("role", "type", "id", "index", "tool_call_id", "cache_control", "signature"),
        *("image_url", "input_audio", "file", "file_data"),
        *("reasoning_opaque", "reasoning_signature", "thought_signature"),
        "encrypted_content",
        "thinking_blocks",  # their text is in reasoning_content, too
    }
)
# Parts that are media: images, sound, and documents; the members with their data.
IMAGES = frozenset({"image_url", "image", "input_image"})
MEDIA = IMAGES | {"input_audio", "audio", "file", "input_file", "document"}
MEDIA_DATA = ("source", "input_audio", "file", "file_data", "data")
# Data that is no text: Anthropic's of images, documents and hidden thinking, OpenRouter's of the
# latter.
NO_TEXT_TYPES = ("base64", "redacted_thinking", "reasoning.encrypted")


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a request.

    The prompt's include those read from and written to the cache, and the written ones those
    that are kept for an hour. The completion's include those of reasoning.
    `completion_tokens` is None until the upstream reports it.
    """

    prompt_tokens: int
    completion_tokens: int | None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    hour_write_tokens: int = 0

    @classmethod
    def read(cls, value: Any) -> Usage | None:
        """Return an upstream's `usage`, or None if its numbers are not valid.

        Its names are those of Chat Completions or of the Responses API; for the cache also those
        of Anthropic, DeepSeek and LiteLLM. Gemini and xAI count reasoning in the total alone.
        """
        if not isinstance(value, dict):
            return None
        match value:  # what most servers send, in a fifth of the time
            case {
                "prompt_tokens": int(p),
                "completion_tokens": int(c),
                "total_tokens": int(t),
            } if len(value) == 3 and 0 < c < t == p + c <= MAX_TOKENS:
                return cls(p, c)
        prompt_given = _either(value, "prompt_tokens", "input_tokens")
        completion_given = _either(value, "completion_tokens", "output_tokens")
        prompt, completion = count(prompt_given), count(completion_given)
        if prompt is None or completion is None:
            return None
        if prompt_given is None and completion_given is None:
            return None
        total = count(value.get("total_tokens")) or 0
        if prompt_given is None:
            prompt = max(0, total - completion)
        completion = max(completion, total - prompt)
        is_reported = completion > 0 or completion_given is not None
        inputs = _details(value, "prompt_tokens_details", "input_tokens_details")
        outputs = _details(value, "completion_tokens_details", "output_tokens_details")
        cached = min(_first(CACHED, inputs, value), prompt)
        reasoning = count(outputs.get("reasoning_tokens")) or 0
        return cls(
            prompt,
            completion if is_reported else None,
            cached,
            min(_first(WRITTEN, inputs, value), prompt - cached),
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


def _either(value: Mapping[str, Any], name: str, other: str) -> Any:
    """Return a member under its name, or under another one if it is 0 or missing."""
    given = value.get(name)
    return given or (given if value.get(other) is None else value[other])


def _details(value: Mapping[str, Any], name: str, other: str) -> Mapping[str, Any]:
    return mapping(_either(value, name, other))


def count(value: Any) -> int | None:
    """Return a number of tokens, 0 for null, None for an invalid value."""
    if value is None:
        return 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= MAX_TOKENS or value != int(value):
        return None
    return int(value)


def _first(names: Iterable[str], *places: Mapping[str, Any]) -> int:
    """Return the first number above 0 that has one of the names in one of the places."""
    for name in names:
        for place in places:
            if (given := place.get(name)) and (number := count(given)):
                return number
    return 0


def estimate(characters: int) -> int:
    """Return about how many tokens a text of this length has, rounded up."""
    return min(-(-characters // CHARACTERS_PER_TOKEN), MAX_TOKENS)


def prompt_length(body: Mapping[str, Any]) -> int:
    """Return how many characters of text a request holds; a token that is no text counts 4."""
    return text_length([body.get(name) for name in PROMPT])


def text_length(value: Any) -> int:
    """Return how many characters of text JSON holds; a token that is no text counts 4.

    Integers are tokens, as embeddings take them. Images, sound and documents count as an estimate.
    Of more than MAX_PARTS parts, each further one counts as a token.
    """
    total, looked_at, left = 0, 0, [value]
    while left and looked_at < MAX_PARTS:
        looked_at += 1
        item = left.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, int) and not isinstance(item, bool):
            total += CHARACTERS_PER_TOKEN
        elif isinstance(item, list):
            left += item
        elif isinstance(item, dict):
            kind = item.get("type")
            if isinstance(kind, str) and kind in MEDIA:
                total += CHARACTERS_PER_TOKEN * _media_tokens(kind, item)
            if kind not in NO_TEXT_TYPES:
                left += [inner for name, inner in item.items() if name not in NOT_TEXT]
    return total + CHARACTERS_PER_TOKEN * len(left)


def _media_tokens(kind: str, part: Mapping[str, Any]) -> int:
    """Return about how many tokens an image, a sound or a document is."""
    if kind in IMAGES:
        return MEDIA_TOKENS
    values = [part.get(name) for name in MEDIA_DATA]
    values += [mapping(value).get(name) for value in values for name in MEDIA_DATA]
    length = sum(len(value) for value in values if isinstance(value, str))
    return MEDIA_TOKENS + length // MEDIA_CHARACTERS
