"""Budgets: what is reserved, charged and refused."""

import asyncio
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from gateway.chat.context import ChatContext
from gateway.chat.metering.budgets import BudgetExceededError, Budgets
from gateway.chat.metering.usage import cost_nano
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import BudgetEntry, Target
from gateway.identity import Rights
from tests.gateway.chat.harness import MESSAGES, V1, V2, ask_models, defined
from tests.gateway.chat.metering.budgeting import (
    ADA,
    BOB,
    ONE,
    Database,
    budget,
    end,
    endpoints,
    process,
    refusal,
    request,
    run,
    use,
)
from tests.gateway.chat.mock_upstream import COMPLETION, answers, greeting


def test_a_request_that_does_not_fit_is_refused_until_the_window_starts_again():
    database = Database()
    budgets = process(database, budget(limit=2))
    run(use(budgets, request(), ONE), use(budgets, request(), ONE))
    error = refusal(budgets, request())
    assert error.headers == {"Retry-After": str(59 * 60 + 30)}
    assert str(error) == (
        "The budget 'b' allows 2 requests an hour. It starts again at 2026-11-25T13:00:00Z."
    )
    database.now += timedelta(hours=1)
    run(use(budgets, request(), ONE))


def test_requests_at_once_cannot_both_take_the_rest():
    budgets = process(Database(), budget(limit=2))
    contexts = [request() for _ in range(3)]

    async def all_at_once():
        reserved = (budgets.reserve(context) for context in contexts)
        return await asyncio.gather(*reserved, return_exceptions=True)

    results = asyncio.run(all_at_once())
    assert [type(result) for result in results].count(BudgetExceededError) == 1


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, 6 + 1024),
        ({"max_tokens": 10}, 16),
        ({"max_completion_tokens": 20, "max_tokens": 10}, 26),
        ({"max_tokens": 10, "n": 3}, 36),
        ({"max_tokens": "many"}, 6 + 1024),
        *(
            ({"max_tokens": 10, "messages": [{"content": [part]}]}, 10 + media)
            for part, media in (
                (
                    {"type": "image_url", "image_url": {"url": "data:" + "x" * 9999}},
                    1500,
                ),
                ({"type": "input_audio", "input_audio": {"data": "x" * 8000}}, 1500),
                ({"type": "file", "file": {"file_data": "x" * 8000}}, 1500),
                ({"type": "document", "source": {"type": "base64", "data": "x"}}, 1500),
            )
        ),
        ({"max_tokens": 10, "tools": [{"name": "x" * 36, "type": "function"}]}, 25),
        # An embedding has no completion, and integers in `input` are tokens.
        *(({"input": given}, 1000) for given in ([[7] * 1000], [7] * 1000, "x" * 4000)),
    ],
)
def test_tokens_are_reserved_for_the_prompt_and_the_longest_completion(body, tokens):
    def asked() -> ChatContext:
        if "input" not in body:
            return request(**body)
        context = request(messages=None, **body)
        context.endpoint = replace(context.endpoint, inference_type="embedding")
        return context

    run(process(Database(), budget("tokens", limit=tokens)).reserve(asked()))
    refusal(process(Database(), budget("tokens", limit=tokens - 1)), asked())


def test_costs_are_counted_at_the_price_of_the_model_that_answered():
    database = Database()
    cheap = process(
        database,
        budget("cost", limit=1, per=("model",)),
        endpoints=lambda: endpoints(small="openai", other="openai"),
    )
    context = request(model="other")
    run(cheap.reserve(context))
    context.endpoint = replace(context.endpoint, name="small")
    run(cheap.reserve(context))
    assert {each.reserved for each in cheap._counters.values()} != {0}
    end(cheap, context, usage=Usage(1000, 100))
    assert {each.reserved for each in cheap._counters.values()} == {0}
    run(cheap.share())
    amounts = {key.subject: amount for key, amount in database.amounts.items()}
    assert amounts == {"model other": 0, "model small": (1000 + 1000) * 1000}


@pytest.mark.parametrize("stream", [False, True])
def test_a_fallback_is_charged_to_its_own_budget_and_passed_over_when_it_is_used_up(
    gateway, upstream, stream
):
    """The model that was asked for counts in no budget."""
    entry = budget("tokens", 2000, "month", models=frozenset({"paid"}))
    gateway.budgets.load = defined(entry)
    good = upstream.script = greeting(stream=stream)
    bad = Target("http://127.0.0.1:1/v1", "bad")
    spare = Target(upstream.url, "spare")
    gateway.declare("free", targets=(bad,), fallbacks=("paid", "spare"))
    gateway.declare("paid")
    gateway.declare("spare", targets=(spare,))
    models = []
    for _ in range(4):
        upstream.script = good
        response = gateway.post(model="free", stream=stream, max_tokens=900)
        assert response.status_code == 200
        models.append(response.headers["X-Signpost-Model"])
        assert gateway.settled(lambda: gateway.limits.running == 0)
        (counter,) = gateway.budgets._counters.values()
        counter.own = 700 * len([name for name in models if name == "paid"])
    assert models == ["paid", "paid", "spare", "spare"]
    assert counter.reserved == 0


@pytest.mark.parametrize(
    ("entry", "model", "counted", "cost"),
    [
        (budget("cost"), "other", 2_000_000, 2_000_000),
        (budget("cost"), "small", 2_000_000, None),  # it has a price
        (budget("cost"), "third", 0, None),  # no model of its kind has one
        (budget("tokens", 5000), "other", 1100, None),
    ],
)
def test_a_model_without_a_price_costs_the_highest_of_its_kind(
    entry, model, counted, cost
):
    """The usage has such a cost, too, and is marked as an estimate."""
    known = endpoints(small="openai", other="openai", third="anthropic")
    database = Database()
    budgets = process(database, entry, endpoints=lambda: known)
    context = request(model=model)
    run(use(budgets, context, Usage(1000, 100)), budgets.share())
    assert list(database.amounts.values()) == [counted]
    assert (cost_nano(context, {}), context.is_estimated) == (cost, bool(cost))


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({}, {ADA, BOB}),
        ({"tenants": frozenset({"acme"})}, {ADA}),
        ({"principals": frozenset({"beta/bob"})}, {BOB}),
        ({"models": frozenset({"large"})}, set()),
        ({"per": ("tenant",)}, {ADA}),
        ({"per": ("principal", "model")}, {ADA}),
        ({"per": ("key",)}, {ADA}),
    ],
)
def test_a_budget_counts_the_requests_that_it_names(fields, refused):
    budgets = process(Database(), budget(limit=1, **fields))
    run(use(budgets, request(ADA), ONE)) if ADA in refused else None
    if BOB in refused and ADA not in refused:
        run(use(budgets, request(BOB), ONE))
    for caller in (ADA, BOB):
        if caller in refused:
            refusal(budgets, request(caller))
        else:
            run(budgets.reserve(request(caller)))


def test_the_strictest_budget_decides_and_nothing_is_held_by_the_others():
    minute = replace(budget(limit=1, window="minute"), name="minute")
    day = replace(budget(limit=1, window="day", per=("tenant",)), name="day")
    wide = replace(budget(limit=100), name="wide")
    budgets = process(Database(), minute, day, wide)
    run(use(budgets, request(), ONE))
    error = refusal(budgets, request())
    assert "'day' allows 1 request a day for tenant acme" in str(error)
    assert {counter.reserved for counter in budgets._counters.values()} == {0}


def test_a_key_may_have_a_budget_of_its_own():
    """It counts in it alone, wherever the request is answered."""
    own = BudgetEntry("key 7", "requests", "day", 2, per=("key",))
    limited = replace(ADA, key_id=7, rights=Rights(budget=own))
    budgets = process(Database())
    run(use(budgets, request(limited), ONE))
    context = request(limited)
    run(budgets.reserve(context))
    context.endpoint = replace(context.endpoint, name="another")
    end(budgets, context, usage=ONE)
    error = refusal(budgets, request(limited))
    assert "The budget 'key 7' allows 2 requests a day for key acme/ada#7." in str(
        error
    )
    run(use(budgets, request(replace(limited, key_id=8, rights=Rights())), ONE))


def test_without_budgets_nothing_is_reserved_or_asked():
    database = Database()
    budgets = process(database)
    context = request()
    run(budgets.reserve(context), budgets.share())
    assert (context.reservation, database.calls) == (None, 0)


MODELS = ("small", "small", "other")


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_a_day_of_traffic_is_what_an_exact_ledger_says(seed):
    """Random requests of two processes, with failures, streams that were left, retries at other
    models, and window ends.
    """
    chance = random.Random(seed)  # noqa: S311
    database = Database()
    entries = (
        replace(budget("requests", 400, "hour"), name="r"),
        replace(budget("tokens", 10**6, "day", per=("tenant",)), name="t"),
        replace(budget("cost", 10**6, "month", per=("model", "principal")), name="c"),
    )
    known = endpoints(small="openai", other="openai")  # both at the price of small
    processes = [process(database, *entries, endpoints=lambda: known) for _ in "12"]
    ledger: Counter[tuple[str, str, datetime]] = Counter()
    running: list[tuple[Budgets, ChatContext, datetime]] = []

    def finish() -> None:
        each, context, began = running.pop(chance.randrange(len(running)))
        if chance.random() < 0.3:
            end(each, context, status=chance.choice((400, 429, 500)))
            return
        caller = context.caller
        usage = Usage(chance.randrange(1000), chance.randrange(1000))
        # The model that answers may be another one than the one that was asked.
        context.endpoint = replace(context.endpoint, name=chance.choice(MODELS))
        status = chance.choice((200, 200, 499))
        end(each, context, status=status, usage=usage)
        model = context.endpoint.name
        names = f"model {model}, principal {caller.tenant}/{caller.principal}"
        ledger["r", "", began.replace(minute=0, second=0)] += 1
        day = began.replace(hour=0, minute=0, second=0)
        completion = usage.completion_tokens or 0
        tokens = usage.prompt_tokens + completion
        ledger["t", f"tenant {caller.tenant}", day] += tokens
        cost = usage.prompt_tokens * 1000 + completion * 10_000
        ledger["c", names, day.replace(day=1)] += cost

    async def day() -> None:
        for _ in range(1000):
            each, context = chance.choice(processes), request(chance.choice((ADA, BOB)))
            await each.reserve(context)
            running.append((each, context, database.now))
            database.now += timedelta(seconds=chance.randrange(180))
            while running and chance.random() < 0.6:
                finish()
            if chance.random() < 0.2:
                await chance.choice(processes).share()
        while running:
            finish()
        for each in processes:
            await each.share()

    asyncio.run(day())
    counters = [one for each in processes for one in each._counters.values()]
    assert not any(counter.reserved for counter in counters)
    stored = {
        (key.budget, key.subject, datetime.fromtimestamp(key.window, UTC)): amount
        for key, amount in database.amounts.items()
        if amount
    }
    assert stored == dict(ledger)


MESSAGES_PATH, RESPONSES, EMBEDDINGS = "/v1/messages", "/v1/responses", "/v1/embeddings"
ROUTES = (V1, V2, MESSAGES_PATH, RESPONSES, EMBEDDINGS)
VECTORS = {"data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 1}}


@pytest.fixture
def limited(gateway, upstream):
    """A gateway whose only budget allows one request in a month."""
    entry = budget(limit=1, window="month", per=("tenant",))
    gateway.budgets.load = defined(entry)
    gateway.declare("vectors", inference_type="embedding")
    upstream.script = answers(COMPLETION)
    return gateway


def call(gateway, path, **fields):
    shape: dict[str, dict[str, Any]] = {
        RESPONSES: {"input": "Say hello"},
        EMBEDDINGS: {"model": "vectors", "input": "Say hello"},
        MESSAGES_PATH: {"max_tokens": 9, "messages": MESSAGES},
    }
    default: dict[str, Any] = {"messages": MESSAGES}
    body = {"model": "small", **shape.get(path, default), **fields}
    return gateway.post(orjson.dumps(body), path=path)


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("stream", [False, True])
def test_every_route_counts_and_refuses_before_the_upstream_is_asked(
    limited, upstream, path, stream
):
    upstream.script = answers(VECTORS if path == EMBEDDINGS else COMPLETION)
    assert call(limited, path).status_code == 200
    refused = call(limited, path, stream=stream)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    body = refused.json()
    text = body["detail"] if path == V2 else body["error"]["message"]
    start = (
        "The budget 'b' allows 1 request a month for tenant acme. It starts again at "
    )
    assert text.startswith(start)
    if path == MESSAGES_PATH:
        assert body["error"]["type"] == "billing_error"
        assert refused.headers["x-should-retry"] == "false"
    assert len(upstream.requests) == 1
    assert limited.settled(lambda: limited.limits.running == 0)


def test_other_refusals_of_messages_may_be_tried_again(gateway):
    gateway.limits.at_once = 1
    gateway.limits._running["acme/ada"] = 1
    refused = call(gateway, MESSAGES_PATH)
    gateway.limits._running.clear()
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert "x-should-retry" not in refused.headers


def test_what_costs_nothing_is_never_denied(limited, upstream):
    call(limited, V1)
    for _ in range(2):
        counted = call(limited, "/v1/messages/count_tokens")
        assert (counted.status_code, counted.json()["estimated"]) == (200, True)
        assert ask_models(limited, "").status_code == 200
    (counter,) = limited.budgets._counters.values()
    assert (counter.used, counter.reserved) == (1, 0)
