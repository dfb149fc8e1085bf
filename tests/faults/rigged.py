"""Runs manage.py as it is, but stops a process at a chosen point, and gives all one clock.

`python -m tests.faults.rigged FOLDER arguments…`: a process that comes to a point of which the
folder holds a file of that name stops (SIGSTOP) and leaves its pid there. It can then be killed at
exactly this point, or go on (SIGCONT) in a world that changed meanwhile.
"""

import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

BEFORE_CLAIM = "before the claim is committed"
CLAIMED = "after the claim is committed"
ANSWERED = "after the receiver's 2xx"
WRITING = "while results are written"
POINTS = (BEFORE_CLAIM, CLAIMED, ANSWERED, WRITING)

# A request with this in its URL kills the process that sends it; one with this waits without end.
DEADLY, PATIENT = "/deadly", "/patient"

CLOCK = "clock"
HALTED = "halted"


def rig(folder: Path) -> None:
    """Wrap the code at each point; needs a set-up Django."""
    from webhooks_core.dispatch import results, sql
    from webhooks_core.dispatch.claims import OpenClaims

    def halt(point: str) -> None:
        try:
            (folder / point).rename(folder / "halting")  # one process wins
        except FileNotFoundError:
            return
        (folder / "halting").write_text(str(os.getpid()))
        (folder / "halting").rename(folder / HALTED)
        os.kill(os.getpid(), signal.SIGSTOP)

    def halt_after(owner: Any, name: str, point: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def wrapped(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            if result or result is None:
                halt(point)
            return result

        setattr(owner, name, wrapped)

    # Inside the transactions, after their last UPDATE and INSERT.
    halt_after(sql, "claim", BEFORE_CLAIM)
    halt_after(sql, "insert_attempts", WRITING)
    halt_after(OpenClaims, "claim_due", CLAIMED)
    halt_before_recording(results, halt)
    change_requests()
    set_clock(folder)


def halt_before_recording(results: Any, halt: Callable[[str], None]) -> None:
    real = results.record_results

    def record_results(lease: Any, ended: Any, **options: Any) -> Any:
        if any(result.outcome == "ok" for _, result in ended):
            halt(ANSWERED)
        return real(lease, ended, **options)

    results.record_results = record_results


def change_requests() -> None:
    """Die of deadly requests, and let patient ones wait for longer than any test."""
    from webhooks_core.dispatch import sender

    module: Any = sender
    real = module.attempt

    async def attempt(request: Any, client: Any) -> Any:
        if DEADLY in request.url:
            os.kill(os.getpid(), signal.SIGKILL)
        if PATIENT in request.url:
            request = request._replace(timeout_s=100_000)
        return await real(request, client)

    module.attempt = attempt


def set_clock(folder: Path) -> None:
    """Have this process, and those that it forks, tell the time that the folder's clock tells."""
    with (folder / CLOCK).open("rb") as file:
        offset = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    real_time, real_now = time.time, datetime.now

    def ahead() -> float:
        return float(struct.unpack("d", offset[:])[0])

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return real_now(tz) + timedelta(seconds=ahead())

    from django.utils import timezone

    from webhooks_core.network import transport

    module: Any = transport
    time.time = lambda: real_time() + ahead()
    timezone.now = lambda: Shifted.now(UTC)
    module.datetime = Shifted


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    rig(Path(sys.argv[1]))
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *sys.argv[2:]])
