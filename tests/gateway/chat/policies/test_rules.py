"""Policies in the configuration: what is read, and each fault with its line."""

from __future__ import annotations

import pytest

from gateway.chat.policies.rules import REMEMBERED, Policies
from gateway.configuration import ConfigurationError
from gateway.configuration.content import PolicyEntry


def test_policies_are_read_in_their_order(load):
    text = """
policies:
  - {name: no cards, action: deny, pattern: card}
  - name: own
    action: mask
    on: both
    words: [Project Falcon]
    models: [small]
    tenants: [acme]
    pass_through: true
  - {name: tools, action: deny, tools: []}
"""
    cards, own, tools = load(text).policies
    assert (cards.name, cards.on, cards.pattern) == ("no cards", "request", "card")
    assert (own.on, own.words, own.pass_through) == ("both", ("Project Falcon",), True)
    assert tools.tools == ()


def test_a_pattern_is_checked_with_its_line(load):
    pytest.importorskip("re2", reason="google-re2 is not installed: run make install")
    with pytest.raises(
        ConfigurationError, match=r":5: policies\[0\]\.regex: is no pat"
    ):
        load(
            "policies:\n  - name: a\n    action: deny\n    on: both\n    regex: '(?=a)'"
        )


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ("action: drop\n    words: [a]", ":3: policies[0].action: must be 'deny' or"),
        ("action: deny\n    on: reply\n    words: [a]", ":4: policies[0].on: must be"),
        ("action: deny", ":2: policies[0]: needs exactly one of regex, words"),
        ("action: deny\n    words: [a]\n    max_size: 1", "needs exactly one of"),
        ("action: mask\n    max_size: 1", "has max_size, which can only deny"),
        ("action: mask\n    tools: [a]", "has tools, which can only deny"),
        ("action: deny\n    on: both\n    tools: [a]", "which are of requests only"),
        ("action: deny\n    words: ['!']", ":4: policies[0].words: must hold phrases"),
        ("action: deny\n    pattern: iban", ":4: policies[0].pattern: must be"),
        ("action: deny\n    python: no.such.module", ".python: cannot be imported"),
        ("action: deny\n    python: gateway.identity.SYSTEM", "is nothing that can be"),
        ("action: deny\n    max_size: 0", "max_size: must be greater than or equal"),
        ("action: deny\n    world: 1", "unknown key; known are name, action, on"),
    ],
)
def test_a_fault_is_reported_with_its_line(load, keys: str, fault: str):
    with pytest.raises(ConfigurationError) as caught:
        load(f"policies:\n  - name: a\n    {keys}")
    assert fault in str(caught.value)


def test_two_policies_differ_in_their_names(load):
    entry = "{name: a, action: deny, pattern: card}"
    with pytest.raises(ConfigurationError, match="same name as an earlier one"):
        load(f"policies:\n  - {entry}\n  - {entry}")


def test_only_a_bounded_number_of_callers_is_remembered():
    policies = Policies.of([PolicyEntry("a", "deny", pattern="card")])
    for number in range(REMEMBERED + 5):
        assert len(policies.applying(model="m", tenant=f"t{number}")) == 1
    assert len(policies._known) == 5
    assert Policies().applying(model="m", tenant="t") == ()
