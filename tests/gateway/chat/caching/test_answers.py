"""Answers from the cache: whose they are, for which requests, and what they cost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.chat.caching import answers as module
from gateway.chat.metering.budget_stores import StoreUnavailableError
from gateway.chat.metering.budgets import Budgets
from gateway.chat.metering.usage import CompletedRequest
from gateway.chat.policies.rules import Policies
from gateway.configuration.content import PolicyEntry
from gateway.configuration.shapes import BudgetEntry, CacheSettings
from tests.gateway.chat.harness import MESSAGES, V1, V2, defined
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    NEVER,
    STREAM,
    WHOLE_STREAM,
    answers,
    greeting,
    sends,
)

OTHER = {"X-Tenant-Id": "globex", "X-Principal-Id": "gus"}
FAILURE = b'data: {"error": {"message": "no"}}\n\n'
USE, SKIP = ({"X-Signpost-Cache": wish} for wish in ("use", "skip"))


@pytest.fixture
def ask(gateway, upstream):
    """Ask a model whose answers are kept; return what X-Cache says, and the response."""
    upstream.script = answers(COMPLETION)
    gateway.declare(cache=CacheSettings(ttl_s=60))

    def ask(temperature: Any = 0, **fields: Any) -> tuple[str | None, Any]:
        if temperature is not None:
            fields["temperature"] = temperature
        response = gateway.post(**fields)
        assert gateway.settled(lambda: not gateway.service.answers._keeping)
        return response.headers.get("X-Cache"), response

    return ask


@pytest.mark.parametrize("path", [V1, V2])
def test_the_second_of_two_equal_requests_is_answered_without_the_upstream(
    gateway, upstream, ask, path
):
    miss, first = ask(path=path)
    hit, second = ask(path=path)
    assert (miss, hit) == ("miss", "hit")
    assert first.content == second.content
    assert len(upstream.requests) == 1
    one, two = gateway.kept.ended
    assert (one.usage.prompt_tokens, two.usage) == (9, None)
    recorded = [CompletedRequest.of(each) for each in (one, two)]
    assert [each.cached for each in recorded] == [False, True]
    assert (two.status, two.counted()) == (200, (None, False))


@pytest.mark.parametrize("path", [V1, V2, "/v1/responses"])
def test_a_stream_is_given_again_as_a_stream(gateway, upstream, ask, path):
    upstream.script = sends(*WHOLE_STREAM)
    fields: dict[str, Any] = {}
    if path == "/v1/responses":
        fields["body"] = json.dumps(
            {"model": "small", "input": "hello", "stream": True, "temperature": 0}
        )
    (miss, first), (hit, second) = (ask(path=path, stream=True, **fields) for _ in "12")
    assert (miss, hit) == ("miss", "hit")
    assert second.headers["Content-Type"] == "text/event-stream"
    assert second.headers["Cache-Control"] == "no-cache"
    assert first.content == second.content
    assert second.content.count(b"data: ") > 2
    assert len(upstream.requests) == 1
    assert [each.status for each in gateway.kept.ended] == [200, 200]


def test_embeddings_are_kept_without_being_asked(gateway, upstream, ask):
    gateway.declare(inference_type="embedding", cache=CacheSettings(ttl_s=60))
    upstream.script = answers({"data": [{"embedding": [0.5]}], "model": "x"})
    path, fields = "/v1/embeddings", {"input": "a"}
    hits = [ask(None, path=path, **fields)[0] for _ in range(2)]
    assert hits == ["miss", "hit"]


# ── Which requests ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "hits"),
    [
        ({"temperature": 0}, ["miss", "hit"]),
        ({"temperature": 0.0}, ["miss", "hit"]),
        ({"temperature": None}, [None, None]),
        ({"temperature": 0.5}, [None, None]),
        ({"temperature": "0"}, [None, None]),
        ({"temperature": 0.5, "headers": USE}, ["miss", "hit"]),
        ({"temperature": None, "headers": USE}, ["miss", "hit"]),
        ({"headers": SKIP}, [None, None]),
        ({"previous_response_id": "resp_1"}, [None, None]),
        ({"prompt": {"id": "pmpt_1"}}, [None, None]),
        ({"container": "container_1"}, [None, None]),
    ],
)
def test_temperature_0_or_a_header_decides(upstream, ask, fields, hits):
    assert [ask(**fields)[0] for _ in range(2)] == hits
    assert len(upstream.requests) == (1 if "hit" in hits else 2)


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [{"role": "user", "content": "Another one"}]},
        {"seed": 1},
        {"max_tokens": 5},
        {"tools": []},
        {"temperature": 0.1, "headers": USE},
        {"path": V1},
        {"stream": True},
        {"headers": OTHER},
        {"seed": 12345678901234567890123},
    ],
)
def test_what_changes_an_answer_has_another_answer(upstream, ask, change):
    ask()
    upstream.script = sends(*STREAM) if change.get("stream") else upstream.script
    assert ask(**change)[0] == "miss"
    assert len(upstream.requests) == 2


def test_the_order_of_fields_and_who_asks_change_nothing(gateway, upstream, ask):
    body = {"model": "small", "messages": MESSAGES, "temperature": 0}
    ask(None, body=json.dumps(body))
    turned = {"user": "bob", **dict(reversed(body.items()))}
    other = {"X-Principal-Id": "bob"}
    assert ask(None, body=json.dumps(turned), headers=other)[0] == "hit"
    assert gateway.answers.tenants == {"acme"}


def test_a_new_configuration_of_the_entry_begins_anew(gateway, upstream, ask):
    ask()
    gateway.declare(cache=CacheSettings(ttl_s=60), extra_body={"top_p": 1})
    assert ask()[0] == "miss"
    gateway.declare(cache=CacheSettings(ttl_s=60), extra_body={"top_p": 1})
    assert ask()[0] == "hit"


@pytest.mark.parametrize("supports", [frozenset(), frozenset({"tools"})])
def test_other_features_of_the_entry_begin_anew(gateway, ask, supports):
    """What it supports decides whether an effort goes to the upstream."""
    ask()
    gateway.declare(cache=CacheSettings(ttl_s=60), supports=supports)
    assert [ask()[0] for _ in "12"] == ["miss", "hit"]


def test_a_new_rule_about_content_begins_anew_and_keeps_what_it_has_masked(
    gateway, upstream, ask
):
    ask()
    rule = PolicyEntry("greeting", "mask", on="answer", words=("Hello",))
    gateway.change(policies=Policies.of([rule]))
    (miss, first), (hit, second) = (ask() for _ in "12")
    assert (miss, hit) == ("miss", "hit")
    assert first.content == second.content
    assert "Hello" not in second.text
    assert not any(b"Hello" in body for body in [*gateway.answers.kept.values()][1:])


def test_a_denied_request_gets_no_kept_answer(gateway, upstream, ask):
    ask()
    rule = PolicyEntry("harbour", "deny", words=("harbour",))
    gateway.change(policies=Policies.of([rule]))
    assert ask()[1].status_code == 400


def test_without_cache_in_the_entry_nothing_is_kept_and_no_header_sent(
    gateway, upstream, ask
):
    gateway.declare()
    assert [ask(headers=USE)[0] for _ in range(2)] == [None, None]
    assert gateway.answers.kept == {}


# ── Which answers ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("_case", "script", "stream"),
    [
        ("the upstream refuses", answers({"error": {"message": "no"}}, 400), False),
        ("the upstream fails", answers({}, 500), False),
        ("the upstream fails before a stream", answers({}, 500), True),
        ("the stream breaks off", sends(*STREAM[:2]), True),
        ("the stream fails", sends(*STREAM[:2], FAILURE), True),
        ("the stream has no finish reason", sends(*STREAM[:2], DONE), True),
    ],
)
def test_only_complete_answers_that_succeeded_are_kept(
    gateway, upstream, ask, _case, script, stream
):
    upstream.script = script
    assert [ask(stream=stream)[0] for _ in range(2)] in (["miss"] * 2, [None] * 2)
    assert len(upstream.requests) == 2
    assert gateway.answers.kept == {}


def test_the_answer_of_a_fallback_is_not_kept(gateway, upstream, ask):
    gateway.declare(cache=CacheSettings(ttl_s=60), fallbacks=("other",))
    gateway.declare(name="other", targets=gateway.known["small"].targets)

    async def script(request: Any) -> None:
        fails = len(upstream.requests) == 1
        await answers({}, 500)(request) if fails else await answers(COMPLETION)(request)

    upstream.script = script
    miss, response = ask()
    assert (miss, response.headers["X-Signpost-Model"]) == ("miss", "other")
    assert gateway.answers.kept == {}


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_is_too_large_is_not_kept(gateway, upstream, ask, stream):
    upstream.script = greeting(stream=stream)
    gateway.declare(cache=CacheSettings(ttl_s=60, max_bytes=40))
    assert [ask(stream=stream)[0] for _ in range(2)] == ["miss", "miss"]
    assert gateway.answers.kept == {}


def test_a_stream_that_the_client_left_is_not_kept(gateway, upstream, ask):
    upstream.script = sends(STREAM[0], NEVER)
    with gateway.opened(temperature=0) as response:
        next(response.iter_content(1))
    assert gateway.settled(lambda: gateway.kept.ended)
    assert gateway.kept.ended[0].status == 499
    assert gateway.answers.kept == {}


# ── Costs and failures ──────────────────────────────────────────────────────────────


def test_a_hit_costs_nothing_and_counts_as_a_request(gateway, upstream, ask):
    ask()
    by_tokens = BudgetEntry("tokens", "tokens", "day", 1)
    by_requests = BudgetEntry("requests", "requests", "day", 1)
    replace_budgets(gateway, by_tokens)
    assert ask()[0] == "hit"  # though no token is left
    assert ask(seed=5)[1].status_code == 429
    replace_budgets(gateway, by_requests)
    assert ask()[0] == "hit"
    assert ask()[1].status_code == 429


def replace_budgets(gateway: Any, *entries: BudgetEntry) -> None:
    gateway.change(budgets=Budgets(defined(*entries)))


class Broken:
    """A store that fails, or never answers."""

    def __init__(self, *, hangs: bool) -> None:
        self.hangs, self.asked = hangs, 0

    async def read(self, _: Any) -> bytes | None:
        self.asked += 1
        if self.hangs:
            await asyncio.sleep(3600)
        raise StoreUnavailableError("OperationalError")

    async def write(self, *_: Any) -> None:
        raise StoreUnavailableError("OperationalError")


@pytest.mark.parametrize("hangs", [False, True])
def test_a_broken_cache_never_breaks_chat(gateway, upstream, ask, monkeypatch, hangs):
    monkeypatch.setattr(module, "READ_S", 0.05)
    gateway.service.answers.store = store = Broken(hangs=hangs)
    assert [ask()[0] for _ in range(3)] == ["miss"] * 3
    assert [each.status for each in gateway.kept.ended] == [200] * 3
    assert store.asked == 1  # nobody waits for it again for a while
