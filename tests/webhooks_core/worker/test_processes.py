from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.running import environment, running, until
from webhooks_core.worker import processes

CHILD = (
    "import time; from webhooks_core.worker import processes;"
    " processes.exit_with_parent({}); time.sleep(600)"
)
PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1].format(os.getpid())])
time.sleep(600)
"""


def test_a_process_dies_with_its_killed_parent():
    with running("-c", PARENT, CHILD, environment=environment()) as parent:
        until(lambda: len(parent.family()) == 2, "the child")
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait_until_nothing_is_left()


def test_a_process_whose_parent_is_dead_already_dies_at_once():
    done = subprocess.run([sys.executable, "-c", CHILD.format(1)], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_nobody_waited_for_is_dead():
    assert processes.is_alive(os.getpid())
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    os.kill(child.pid, 0)  # it still has an entry
    assert not processes.is_alive(child.pid)
    child.wait()
    assert not processes.is_alive(child.pid)


CROSSING = """
import os
from webhooks_core.worker import shutdown
seen = [shutdown.is_set()]
if not (child := os.fork()):
    shutdown.request()
    os._exit(0)
os.waitpid(child, 0)
seen.append(shutdown.is_set())
print(*seen)
"""


def test_a_request_to_stop_crosses_a_fork():
    done = subprocess.run(
        [sys.executable, "-c", CROSSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
