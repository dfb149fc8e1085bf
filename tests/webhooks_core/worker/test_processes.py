import os
import signal
import subprocess
import sys

from tests.running import environment, running, until

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


CROSSING = """
import os
from webhooks_core.worker import processes
seen = [processes.is_stopping()]
if not (child := os.fork()):
    processes.request_stop()
    os._exit(0)
os.waitpid(child, 0)
seen.append(processes.is_stopping())
print(*seen)
"""


def test_a_request_to_stop_crosses_a_fork():
    done = subprocess.run(
        [sys.executable, "-c", CROSSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
