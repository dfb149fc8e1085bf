"""What a run of the suite reports, and what it does not blame on an innocent test."""

from __future__ import annotations

import sys

import pytest

from tests.running import ROOT, environment
from tests.tools import output_of

LEAK = """
import socket, tracemalloc

tracemalloc.start(5)

def test_leaks():
    pair = list(socket.socketpair())
    pair.append(pair)  # only the garbage collection finds it
"""
INNOCENT = "def test_is_innocent():\n    pass\n"


@pytest.mark.slow
def test_a_run_reports_what_it_left_open_and_what_it_left_out_and_fails_no_test(
    tmp_path,
):
    files = {
        "conftest": "from tests.conftest import *\n",
        "test_leak": LEAK,
        "test_b": INNOCENT,
        "test_c": INNOCENT,
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    arguments = ["-m", "pytest", "-c", str(ROOT / "pyproject.toml")]
    options = ["-p", "no:cacheprovider", "-m", "not slow", "--random-order=5"]
    output = output_of(
        [sys.executable, *arguments, *options, str(tmp_path)],
        cwd=ROOT,
        env=environment(),
    )
    assert "random order: repeat with --random-order=5" in output
    _, _, warnings = output.partition("warnings summary")
    assert "test_leak.py::test_leaks" in warnings
    assert "unclosed <socket.socket" in warnings
    assert 'test_leak.py", line 7' in warnings  # where it was made
    left_out, closing = output.splitlines()[-2:]
    assert "`make test-all`" in left_out
    assert "3 passed" in closing
