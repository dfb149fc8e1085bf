"""A process that does jobs for the deliveries benchmark, one after another, and returns their results.

Run as `python -m benchmarks.deliveries.jobs`. It reads a line of JSON for each job and answers with
one: only such processes touch the scratch databases, never the command itself.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any

import django

# Modules whose functions are jobs.
MODULES = ("deliveries.filling", "deliveries.posting", "scale")


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # other output goes to the log
    django.setup()
    jobs: dict[str, Any] = {}
    for name in MODULES:
        jobs |= vars(import_module(f"benchmarks.{name}"))
    for line in sys.stdin:
        asked = json.loads(line)
        answers.write(json.dumps(_done(jobs, **asked)) + "\n")


def _done(jobs: dict[str, Any], *, job: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": jobs[job](**given)}
    except Exception as error:  # reported to the command, which ends
        traceback.print_exc()
        return {"error": f"{job}: {type(error).__name__}: {error}"}


if __name__ == "__main__":
    serve()
