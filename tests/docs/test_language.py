"""The checker of the documentation's language finds what breaks each of its rules, and nothing else."""

from __future__ import annotations

import pytest

from tests.docs.language import MAX_WORDS, findings, main

LONG = " ".join(["word"] * (MAX_WORDS + 1)) + "."
WRONG = {
    LONG: f"a sentence of {MAX_WORDS + 1} words",
    "It is sent, whatever happens.": "“whatever”",
    "An operator has his own key.": "“his”",
    "The port is simply closed.": "“simply”",
    "The lane of an endpoint.": "glossary",
    "The row is locked by the dispatcher.": "passive",
    "## How it ends": "name the thing or the task",
    "## Stop it.": "ends with punctuation",
    "| a cell | lest it fails |": "“lest”",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_a_rule_that_is_broken_is_found_with_its_line(tmp_path, text, message):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nA good sentence.\n\n{text}\n")
    [(line, found)] = findings(page)
    assert line == 5
    assert message in found


def test_code_addresses_and_good_sentences_are_accepted(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Verify a signature\n\nSet `whatever` at [the page](his/lest.md).\n\n"
        f"```sh\n{LONG} simply whatever\n```\n\n1. Stop the worker.\n2. Start it again.\n"
    )
    assert list(findings(page)) == []


def test_the_command_prints_the_place_and_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tests.docs.language.ROOT", tmp_path)
    (tmp_path / "page.md").write_text("It simply works.\n")
    assert main([str(tmp_path / "page.md")]) == 1
    assert capsys.readouterr().out.startswith("page.md:1: “simply”")
