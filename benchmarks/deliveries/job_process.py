"""A process that does jobs for the deliveries benchmark, one after another, and returns their results.

Run as `python -m benchmarks.deliveries.job_process PARENT`. It reads a line of JSON for each job and answers
with one: only such processes touch the scratch databases, never the command itself.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

import django

from webhooks_core.worker import processes


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # other output goes to the log
    django.setup()
    from benchmarks.deliveries import jobs

    for line in sys.stdin:
        asked = json.loads(line)
        answers.write(json.dumps(_done(jobs, **asked)) + "\n")


def _done(jobs: Any, *, job: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": getattr(jobs, job)(**given)}
    except Exception as error:  # noqa: BLE001 - reported to the command, which ends
        traceback.print_exc()
        return {"error": f"{job}: {type(error).__name__}: {error}"}


if __name__ == "__main__":
    processes.exit_with_parent(int(sys.argv[1]))
    serve()
