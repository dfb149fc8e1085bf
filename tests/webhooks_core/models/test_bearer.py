"""Opaque tokens: made by us or told apart from what was not."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks_core.models import bearer

PREFIX = "rec_pat_"


def test_a_token_is_its_prefix_30_characters_and_a_checksum():
    token = bearer.make(PREFIX)
    assert re.fullmatch(r"rec_pat_[0-9A-Za-z]{36}", token)
    assert bearer.is_well_formed(token, PREFIX)
    assert not bearer.is_well_formed(token, "gw_key_")


def test_tokens_never_repeat():
    assert len({bearer.make(PREFIX) for _ in range(1000)}) == 1000


@given(place=st.integers(0, 43), letter=st.sampled_from(bearer.BASE62))
def test_one_wrong_character_is_noticed(place, letter):
    token = bearer.make(PREFIX)
    changed = token[:place] + letter + token[place + 1 :]
    assert bearer.is_well_formed(changed, PREFIX) == (changed == token)


@pytest.mark.parametrize(
    "token", ["", PREFIX, PREFIX + "0" * 36, PREFIX + "é" * 36, PREFIX + "\0" * 36]
)
def test_malformed_tokens_are_refused(token):
    assert not bearer.is_well_formed(token, PREFIX)


def test_only_a_hash_is_kept():
    token = bearer.make(PREFIX)
    kept = bearer.digest(token)
    assert kept == hashlib.sha256(token.encode()).hexdigest()
    assert token not in kept
