"""Tasks that the tests give to a real cluster."""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

from webhooks_core.worker import shutdown


def sign(path: str) -> None:
    """Write this worker's pid into a file."""
    Path(path).write_text(str(os.getpid()))


def work_until_stopped(path: str) -> None:
    """Sign, then work until the cluster is asked to stop; sign that too."""
    sign(path)
    while not shutdown.is_set():
        time.sleep(0.01)
    Path(path).with_suffix(".stopped").touch()


def work_for_ever(path: str) -> None:
    """Sign, then ignore every wish."""
    sign(path)
    while True:
        time.sleep(0.1)


def die_within_a_message(path: str) -> None:
    """Sign, then die as a worker does that is killed while it writes its result."""
    sign(path)
    frame: Any = sys._getframe()
    while "result_queue" not in frame.f_locals:
        frame = frame.f_back
    writer = frame.f_locals["result_queue"]._writer.fileno()
    os.write(writer, struct.pack("!i", 2**30) + b"half")
    os.kill(os.getpid(), signal.SIGKILL)
