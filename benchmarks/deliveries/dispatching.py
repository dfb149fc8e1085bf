"""The job of a dispatcher: what `manage.py webhooks_dispatch` does, measured from inside."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from benchmarks.deliveries.sending import Watch
from webhooks_core.dispatch.dispatcher import dispatch


def dispatch_all(at: float) -> dict[str, float]:
    """Dispatch from a moment on until nothing waits; return the peak of memory too."""
    # Reset the peak of memory, so that it is that of this run.
    Path("/proc/self/clear_refs").write_text("5")
    watch = Watch(at)
    attempts = dispatch(linger=timedelta(0))
    return watch.read(attempts) | {"peak": peak_memory()}


def peak_memory() -> int:
    """Return the most bytes that were resident."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this kernel does not report VmHWM")
