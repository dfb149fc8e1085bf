"""What the owner of a receiver does about each class of failure."""

from __future__ import annotations

import pytest

from webhooks_core.owners.remedies import remedy


@pytest.mark.parametrize(
    ("outcome", "status", "words"),
    [
        ("ok", 204, ""),
        ("http", 401, "signature"),
        ("http", 418, "refused the request"),
        ("http", 500, "log of your server"),
        ("http", 301, "Redirects are not followed"),
        ("timeout", None, "after 5 s"),
        ("dns", None, "DNS"),
        ("tls", None, "certificate"),
    ],
)
def test_each_class_of_error_has_a_remedy(outcome, status, words):
    text = remedy(outcome, status, timeout_s=5)
    assert words in text
    assert bool(words) == bool(text)
