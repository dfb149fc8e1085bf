"""Tasks that the tests give to a real cluster."""

import os
import time
from pathlib import Path

from webhooks_core.worker import processes


def sign(path: str) -> None:
    """Write this worker's pid into a file."""
    Path(path).write_text(str(os.getpid()))


def work_until_stopped(path: str) -> None:
    """Sign, then work until the cluster is asked to stop; sign that too."""
    sign(path)
    while not processes.is_stopping():
        time.sleep(0.01)
    Path(path).with_suffix(".stopped").touch()


def work_for_ever(path: str) -> None:
    """Sign, then ignore every wish."""
    sign(path)
    while True:
        time.sleep(0.1)
