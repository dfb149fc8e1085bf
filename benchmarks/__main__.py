"""Run a benchmark: `python -m benchmarks NAME [OPTIONS]`. Nothing here runs in a serving instance."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import django
from django.core.management.base import BaseCommand

COMMANDS = {
    "auth": "benchmarks.auth",
    "budgets": "benchmarks.chat.budgets",
    "catalog": "benchmarks.catalog.command",
    "chat": "benchmarks.chat.command",
    "deliveries": "benchmarks.deliveries.command",
    "hostile": "benchmarks.hostile.command",
    "mcp": "benchmarks.mcp.command",
    "page": "benchmarks.page",
    "recordings": "benchmarks.recordings",
    "scale": "benchmarks.scale.command",
    "search": "benchmarks.catalog.search",
}


def command(name: str) -> BaseCommand:
    """Return the command of a benchmark. Raises KeyError for an unknown name."""
    created: BaseCommand = import_module(COMMANDS[name]).Command()
    return created


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] not in COMMANDS:
        sys.exit(f"usage: python -m benchmarks {{{','.join(COMMANDS)}}} [OPTIONS]")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    command(arguments[0]).run_from_argv(["python -m benchmarks", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
