"""Run benchmarks: `python -m benchmarks [NAME [OPTIONS]]`. Nothing here runs in a serving instance.

Without a name: deliveries, chat and catalog, with the peers that are installed.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import django
from django.core.management.base import BaseCommand

COMMANDS = {
    "deliveries": "benchmarks.deliveries.command",
    "chat": "benchmarks.chat.command",
    "catalog": "benchmarks.catalog.command",
    "scale": "benchmarks.scale",
}
COMPARED = ("deliveries", "chat", "catalog")


def command(name: str) -> BaseCommand:
    """Return the command of a benchmark. Raises KeyError for an unknown name."""
    created: BaseCommand = import_module(COMMANDS[name]).Command()
    return created


def main(arguments: list[str]) -> None:
    if arguments and arguments[0] not in COMMANDS:
        sys.exit(f"usage: python -m benchmarks [{{{','.join(COMMANDS)}}} [OPTIONS]]")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    for name in [arguments[0]] if arguments else COMPARED:
        given = arguments[1:]
        command(name).run_from_argv(["python -m benchmarks", name, *given])


if __name__ == "__main__":
    main(sys.argv[1:])
