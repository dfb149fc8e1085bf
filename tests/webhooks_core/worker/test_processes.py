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
from webhooks_core import processes
{rule}
children = [os.fork() for _ in range(2)]
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("_case", "rule"),
    [
        ("by the kernel", "processes.children_die_with_us()"),
        (
            "by looking",
            "sys.platform = 'elsewhere'; processes.children_die_with_us()",
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
            "from webhooks_core import processes as p; p.die_with(1)",
        ],
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


CROSSING = """
import os
from webhooks_core import stopping
seen = [stopping.is_set()]
if not (child := os.fork()):
    stopping.request()
    os._exit(0)
os.waitpid(child, 0)
seen.append(stopping.is_set())
stopping.forget()
print(*seen, stopping.is_set())
"""


def test_the_wish_to_stop_crosses_a_fork():
    done = subprocess.run(
        [sys.executable, "-c", CROSSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True", "False"]


@pytest.mark.skipif(
    sys.platform != "linux", reason="it is Linux that tells of children"
)
def test_the_descendants_of_a_process_are_itself_and_all_that_it_started():
    arguments = ("-c", STARTER.format(rule="processes.children_die_with_us()"))
    with running(*arguments, environment=environment()) as family:
        until(lambda: len(family.family()) == 4, "the fork of a fork")
        found = processes.descendants(family.pid)
        assert found[0] == family.pid
        assert sorted(found) == sorted(family.family())
    assert processes.descendants(family.pid) == [family.pid]
