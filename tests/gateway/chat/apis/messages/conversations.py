"""Conversations in the shapes of both APIs, made from a seed."""

import json
from random import Random
from typing import Any

from tests.gateway.chat.upstreams.anthropic_events import (
    named,
)

WORDS = (
    "tide",
    "Brest",
    "",
    " ",
    "\n",
    "“é”",
    "漢",
    '"',
    "\\",
    "model",
    "\u0000x",
    "🚢",
)
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}


class Maker:
    """Makes values; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - to be the same in every run
        self._ids = 0

    def chance(self, probability: float = 0.5) -> bool:
        return self.random.random() < probability

    def text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randrange(1, 5)))

    def some(self, make: Any, most: int = 3, least: int = 0) -> list[Any]:
        return [make() for _ in range(self.random.randrange(least, most + 1))]

    def key(self) -> str:
        """Return an id of a call; some servers use other characters, or begin again."""
        self._ids += 1
        odd = [f"functions.tide:{self._ids % 2}", f"call {self._ids}", "n0_x", ""]
        return self.random.choice([f"call_{self._ids}", *odd])

    def input(self) -> dict[str, Any]:
        value = self.random.choice([1, 2.5, None, True, ["a", {"b": self.text()}]])
        return {"at": self.text(), "n": value} if self.chance(0.8) else {}

    # ── Anthropic's shape ───────────────────────────────────────────────────────────

    def cached(self, block: dict[str, Any]) -> dict[str, Any]:
        if self.chance(0.05):
            block["cache_control"] = {"type": "ephemeral"}
        return block

    def text_block(self) -> dict[str, Any]:
        return self.cached({"type": "text", "text": self.text()})

    def image_block(self) -> dict[str, Any]:
        source = self.random.choice(
            [
                {"type": "base64", "media_type": "image/png", "data": "aGk="},
                {"type": "url", "url": "https://example.org/tide.png"},
            ]
        )
        return {"type": "image", "source": source}

    def document_block(self) -> dict[str, Any]:
        source = self.random.choice(
            [
                {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                {"type": "text", "media_type": "text/plain", "data": self.text()},
            ]
        )
        block = {"type": "document", "source": source}
        return {**block, "title": self.text()} if self.chance() else block

    def user_block(self) -> dict[str, Any]:
        kinds = [
            self.text_block,
            self.text_block,
            self.image_block,
            self.document_block,
        ]
        block: dict[str, Any] = self.random.choice(kinds)()
        return block

    def result_block(self, key: str) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": key}
        if self.chance(0.8):
            block["content"] = (
                self.text() if self.chance() else self.some(self.user_block)
            )
        return {**block, "is_error": True} if self.chance(0.2) else block

    def anthropic_turns(self) -> list[dict[str, Any]]:
        turns: list[dict[str, Any]] = []
        for _ in range(self.random.randrange(1, 5)):
            content = (
                self.text() if self.chance(0.3) else self.some(self.user_block, least=1)
            )
            turns.append({"role": "user", "content": content})
            blocks: list[dict[str, Any]] = []
            if self.chance():
                thought = {
                    "thinking": self.text(),
                    "signature": self.random.choice(
                        ["c2ln", "signpost:reasoning", "signpost:reasoning_content"]
                    ),
                }
                blocks.append({"type": "thinking", **thought})
            if self.chance(0.2):
                blocks.append({"type": "redacted_thinking", "data": "ZGF0YQ=="})
            blocks += self.some(self.text_block, least=1)
            keys = [
                f"toolu_{number}_{len(turns)}"
                for number in range(self.random.randrange(3))
            ]
            blocks += [
                {"type": "tool_use", "id": key, "name": "tide", "input": self.input()}
                for key in keys
            ]
            turns.append({"role": "assistant", "content": blocks})
            if keys:
                results = [self.result_block(key) for key in keys]
                turns.append(
                    {
                        "role": "user",
                        "content": [*results, *self.some(self.user_block, 1)],
                    }
                )
        return turns

    def anthropic_request(self) -> dict[str, Any]:
        optional: dict[str, Any] = {
            "system": self.text() if self.chance() else self.some(self.text_block),
            "temperature": 0.5,
            "top_p": 0.9,
            "stop_sequences": [self.text() or "END"],
            "metadata": {"user_id": "u" * self.random.choice([3, 100])},
            "service_tier": self.random.choice(["auto", "standard_only"]),
            "tools": [{"name": "tide", "description": "x", "input_schema": SCHEMA}],
            "thinking": self.random.choice(
                [
                    {"type": "adaptive"},
                    {"type": "disabled"},
                    {"type": "enabled", "budget_tokens": self.random.choice([1024, 5000, 30000])},
                ]
            ),
            "output_config": self.random.choice(
                [
                    {"effort": "high"},
                    {"format": {"type": "json_schema", "schema": SCHEMA}},
                ]
            ),
            "stream": self.chance(),
        }  # fmt: skip
        body = {name: value for name, value in optional.items() if self.chance(0.4)}
        if "tools" in body:
            body["tool_choice"] = self.random.choice(
                [
                    {"type": "auto", "disable_parallel_tool_use": self.chance()},
                    {"type": "any"},
                    {"type": "tool", "name": "tide"},
                    {"type": "none"},
                ]
            )
        return {
            "model": "small",
            "max_tokens": 4096,
            "messages": self.anthropic_turns(),
            **body,
        }

    # ── OpenAI's shape ──────────────────────────────────────────────────────────────

    def call(self) -> dict[str, Any]:
        arguments = json.dumps(self.input()) if self.chance(0.9) else ""
        function = {"name": "tide", "arguments": arguments}
        return {"id": self.key(), "type": "function", "function": function}

    def usage(self) -> dict[str, Any]:
        prompt, completion = (
            self.random.randrange(1, 999),
            self.random.randrange(1, 999),
        )
        cached = self.random.randrange(prompt)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": completion // 2},
        }

    def said(self) -> dict[str, Any]:
        """Return a message of the assistant, as a completion holds it."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None,
            "refusal": None,
        }
        if self.chance(0.4):
            name = self.random.choice(["reasoning_content", "reasoning"])
            message[name] = self.text()
        calls = self.some(self.call, 3)
        if not calls or self.chance():
            message["content"] = self.text()
        return {**message, "tool_calls": calls} if calls else message

    def completion(self) -> dict[str, Any]:
        message = self.said()
        reason = self.random.choice(["stop", "length", "content_filter"])
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if message.get("tool_calls") else reason,
            "logprobs": None,
        }
        return {
            "id": f"chatcmpl-{self.random.randrange(999)}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "upstream-model",
            "choices": [choice],
            "usage": self.usage(),
        }

    def parts_of(self, text: str) -> list[str]:
        """Return a text in parts, some of them empty."""
        cuts = sorted(self.random.randrange(len(text) + 1) for _ in range(3))
        return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    def deltas(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a message as a stream would bring it; one call after another."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        for name in ("reasoning_content", "reasoning", "content"):
            deltas += [{name: part} for part in self.parts_of(message.get(name) or "")]
        calls: list[list[dict[str, Any]]] = []
        for index, call in enumerate(message.get("tool_calls", ())):
            name, text = call["function"]["name"], call["function"]["arguments"]
            first = {"id": call["id"], "type": "function"}
            function = {"name": name, "arguments": ""}
            parts = [{"index": index, **first, "function": function}]
            parts += [
                {"index": index, "function": {"arguments": part}}
                for part in self.parts_of(text)
            ]
            calls.append(parts)
        deltas += [{"tool_calls": [part]} for parts in calls for part in parts]
        return deltas

    def chunks(self, completion: dict[str, Any]) -> list[dict[str, Any]]:
        (choice,) = completion["choices"]
        head = {name: completion[name] for name in ("id", "created", "model")}
        head["object"] = "chat.completion.chunk"
        made = [
            {"index": 0, "delta": delta, "finish_reason": None}
            for delta in self.deltas(choice["message"])
        ]
        made.append({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]})
        usage = {**head, "choices": [], "usage": completion["usage"]}
        return [*({**head, "choices": [one]} for one in made), usage]

    def openai_messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
        for _ in range(self.random.randrange(1, 4)):
            parts: list[Any] = [{"type": "text", "text": self.text()}]
            if self.chance(0.3):
                url = {"url": "data:image/png;base64,aGk="}
                parts.append({"type": "image_url", "image_url": url})
            messages.append(
                {"role": "user", "content": parts if self.chance() else self.text()}
            )
            said = {name: v for name, v in self.said().items() if v is not None}
            messages.append(said)
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": self.text()}
                for call in said.get("tool_calls", ())
            ]
        return [*messages, {"role": "user", "content": "Go on."}]


OVERLOADED = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
    "request_id": "req_011",
}


def with_model(name: str, *events: dict[str, Any]) -> bytes:
    """Return a stream as a client gets it."""
    stream = b"".join(map(named, events))
    return stream.replace(b'"claude-there"', json.dumps(name).encode())
