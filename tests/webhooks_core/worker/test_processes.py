from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.running import environment, running, until
from webhooks_core.worker import processes

STARTER = """
import os, sys, time
from webhooks_core.worker import processes
{rule}
children = [os.fork() for _ in range(2)]
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("_case", "rule"),
    [
        ("by the kernel", "processes.kill_children_on_exit()"),
        (
            "by polling",
            "sys.platform = 'elsewhere'; processes.kill_children_on_exit()",
        ),
    ],
)
def test_forked_children_and_grandchildren_die_with_a_killed_parent(_case, rule):
    arguments = ("-c", STARTER.format(rule=rule))
    with running(*arguments, environment=environment()) as family:
        until(lambda: len(family.family()) == 4, "the fork of a fork")
        os.kill(family.pid, signal.SIGKILL)
        family.wait_until_nothing_is_left()


def test_a_process_whose_parent_is_dead_already_dies_at_once():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from webhooks_core.worker import processes as p; p.exit_with_parent(1)",
        ],
        check=False,
    )
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists children")
def test_descendants_are_a_process_and_all_that_it_started():
    arguments = ("-c", STARTER.format(rule="processes.kill_children_on_exit()"))
    with running(*arguments, environment=environment()) as family:
        until(lambda: len(family.family()) == 4, "the fork of a fork")
        pids = processes.descendants(family.pid)
        assert pids[0] == family.pid
        assert sorted(pids) == sorted(family.family())
    assert processes.descendants(family.pid) == [family.pid]
