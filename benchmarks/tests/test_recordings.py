"""The benchmark of recordings imports and searches in a database of its own."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command

from benchmarks.__main__ import command
from recording.models import Recording


@pytest.mark.django_db
def test_recordings_are_imported_and_searched(capfd):
    call_command(command("recordings"), recordings=10, words=60, times=2)
    output = capfd.readouterr().out
    assert re.search(r"sqlite, 10 recordings of 60 words: import \d+ ms", output)
    assert re.search(r"\| a word of every recording \| 20 \| \d+ \| \d+ \|", output)
    assert re.search(r"\| a phrase of one recording in 10 \| 1 \| \d+", output)
    assert re.search(r"\| a phrase of none, of words of all \| 0 \| \d+", output)
    assert not Recording.objects.exists()
