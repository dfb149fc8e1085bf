"""A saved run replaces its own section, and the pages get its figures."""

from __future__ import annotations

import pytest

from benchmarks import page, results
from benchmarks.page import Quotation

ROWS: dict[str, dict[str, float | str]] = {
    "Signpost": {"requests/s": 2345.6, "CPU, ms": 0.123},
    "other": {"failures": 7},
}
QUOTED = Quotation(
    "README.md", r"serves ([\d,]+)/s", "chat", "peers", "Signpost", "requests/s"
)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FILE", tmp_path / "results.json")
    results.save("rest", {"peers": {}})
    results.save("chat", {"peers": {}})
    results.save("chat", {"peers": ROWS}, left_out={"smg": "not installed"})
    return results.load()


def test_a_section_replaces_its_own_alone(saved):
    assert set(saved) == {"rest", "chat"}
    assert saved["chat"]["tables"]["peers"] == ROWS
    assert {"at", "commit", "machine", "command"} <= saved["chat"].keys()


def test_a_marked_table_is_written_again(saved):
    text = "a <!-- results: chat.peers -->\nold\n<!-- end of results --> b"
    written = page.MARKED.sub(lambda found: page.marked(saved, found), text)
    assert written == (
        "a <!-- results: chat.peers -->\n\n"
        "| | requests/s | CPU, ms | failures |\n|---|---:|---:|---:|\n"
        "| Signpost | 2,346 | 0.12 |  |\n| other |  |  | 7 |\n\n"
        "<!-- end of results --> b"
    )


def test_a_run_tells_what_was_left_out(saved):
    text = "<!-- results: chat.run -->\n<!-- end of results -->"
    written = page.MARKED.sub(lambda found: page.marked(saved, found), text)
    assert "Left out: smg (not installed)." in written


def test_a_quoted_figure_is_replaced_or_missed(saved):
    assert page.quoted(saved, QUOTED, "It serves 1/s.") == "It serves 2,346/s."
    with pytest.raises(LookupError, match="README"):
        page.quoted(saved, QUOTED, "It serves nobody.")
