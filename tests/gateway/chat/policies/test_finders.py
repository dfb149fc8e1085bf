"""What rules find in a text, and that no text takes more time than its size."""

from __future__ import annotations

import time

import pytest

from gateway.chat.policies import finders


def parts(find: finders.Finder, text: str) -> list[str]:
    return [text[start:end] for start, end in find(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pay 4111111111111111 now", ["4111111111111111"]),
        ("4111 1111 1111 1111", ["4111 1111 1111 1111"]),
        ("3782-822463-10005", ["3782-822463-10005"]),
        ("1 4111 1111 1111 1111", ["4111 1111 1111 1111"]),
        ("4111111111111111 5500000000000004", ["4111111111111111", "5500000000000004"]),
        ("4111111111111112", []),  # a wrong check digit
        ("a number of 30 digits: 411111111111111141111111111111", []),
        ("4111  1111 1111 1111", []),
        ("0000000000000000", []),
        ("٤١١١١١١١١١١١١١١١", []),
    ],
)
def test_cards(text: str, found: list[str]):
    assert parts(finders.cards, text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("to ada.l+x@mail.example.com, please", ["ada.l+x@mail.example.com"]),
        ("<ada@example.com>bob@example.org.", ["ada@example.com", "bob@example.org"]),
        ("no@host and @name and a@b.c", []),
    ],
)
def test_emails(text: str, found: list[str]):
    assert parts(finders.emails, text) == found


@pytest.mark.parametrize(
    "key",
    [
        *("sk-proj-abcdefghijklmnop1234", "sk-ant-api03-abcdefghijklmnopqrst"),
        *("gw_key_" + "a" * 36, "ghp_" + "A1" * 18, "AKIAABCDEFGHIJKLMNOP"),
        *("AIza" + "x" * 35, "xoxb-1234567890-abc", "-----BEGIN RSA PRIVATE KEY-----"),
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmno",
    ],
)
def test_api_keys(key: str):
    assert parts(finders.api_keys, f"key={key} end") == [key]


def test_words_of_prose_are_no_keys():
    assert not parts(finders.api_keys, "a risk-assessment-of-everything-here task-list")


def test_words_and_phrases_are_whole_and_of_any_case():
    find = finders.words(["Project Falcon", "secret", "Größe"])
    text = "PROJECT  falcon is a Secret, not secretive; GRÖSSE and project falcons"
    assert parts(find, text) == ["PROJECT  falcon", "Secret", "GRÖSSE"]
    with pytest.raises(ValueError, match="1 to 10 words"):
        finders.words(["..."])


def test_patterns_are_of_re2():
    pytest.importorskip("re2", reason="google-re2 is not installed: run make install")
    assert parts(finders.regex("(?i)acct-[0-9]+"), "é ACCT-12, acct-3") == [
        "ACCT-12",
        "acct-3",
    ]
    for pattern in ("(?=a)", "(", "a*", r"(a)\1"):
        with pytest.raises(ValueError, match=r"RE2|empty"):
            finders.regex(pattern)


HOSTILE = (
    "a" * 20,
    "1 " * 10,
    "@" * 20,
    "a@b" * 7,
    "sk-" * 7,
    "4" * 20,
    "eyJaaaaaaaaaa.",
)


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("find", [*finders.PATTERNS.values(), finders.words(["a b c"])])
def test_time_grows_with_the_size_alone(find: finders.Finder, unit: str):
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        began = time.thread_time()
        assert sum(1 for _ in find(text)) >= 0
        return time.thread_time() - began

    # Quadratic time would be 400 times as much, each time. A busy machine is slow now and then.
    assert any(
        seconds(100_000) < 100 * max(seconds(5_000), 0.001) for _attempt in range(10)
    )
