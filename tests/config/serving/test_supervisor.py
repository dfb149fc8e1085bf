import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.running import Running, environment, running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

POLITE = "import time; print('at work', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + POLITE
FAILING = (
    "import signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7)); "
) + POLITE
PARENT = (
    "import subprocess, sys; "
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
) + POLITE
LATE = (
    "import signal, sys, time\n"
    "def end(*_):\n time.sleep(1); print('done', flush=True); sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, end)\n"
) + POLITE
SUPERVISE = """
import os, sys
from config.serving.supervisor import Supervisor
programs = {
    f"program {i}": [sys.executable, "-c", code]
    for i, code in enumerate(sys.argv[2:], 1)
}
say = lambda line: print(line, flush=True)
it = Supervisor(say, grace_s=float(sys.argv[1]))
sys.exit(it.run(programs, os.environ, on_ready=lambda: say("ready")))
"""


@contextmanager
def supervised(*programs: str, grace_s: float = 30) -> Iterator[Running]:
    arguments = ("-c", SUPERVISE, str(grace_s), *programs)
    with running(*arguments, environment=environment()) as process:
        until(lambda: process.output.count("at work") >= len(programs), "all at work")
        yield process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_ends_all_programs_and_counts_as_success(number):
    with supervised(POLITE, POLITE) as process:
        assert process.end(number) == 0
        assert process.family() == []


def test_a_program_may_end_within_the_grace():
    with supervised(LATE) as process:
        assert process.end() == 0
        assert "done" in process.output


@pytest.mark.parametrize(
    ("number", "end"),
    [(signal.SIGUSR1, "exit status 7"), (signal.SIGKILL, "killed by SIGKILL")],
)
def test_a_program_that_ends_by_itself_ends_the_others_and_is_named(number, end):
    with supervised(POLITE, FAILING) as process:
        os.kill(process.children()[1], number)
        assert process.status() == 1
        assert f"program 2 ended unexpectedly ({end})" in process.output
        assert process.family() == []


def test_a_program_that_does_not_end_is_killed_after_the_grace():
    with supervised(POLITE, STUBBORN, grace_s=0.5) as process:
        assert process.end() == 1
        assert "program 2 had to be killed." in process.output
        assert process.family() == []


def test_a_second_signal_does_not_wait_for_the_grace():
    with supervised(STUBBORN) as process:
        os.kill(process.pid, signal.SIGINT)
        process.wait_for("Stopping")
        assert process.end(signal.SIGINT) == 1
        assert process.family() == []


def test_child_processes_of_a_program_end_with_it():
    with supervised(PARENT) as process:
        assert len(process.family()) == 3
        process.end()
        process.wait_until_nothing_is_left()


def test_programs_are_not_in_the_terminals_process_group():
    with supervised(POLITE) as process:
        [child] = process.children()
        assert os.getpgid(child) == os.getsid(child) == child
