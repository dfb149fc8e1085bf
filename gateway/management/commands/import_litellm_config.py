"""Turn a config.yaml of LiteLLM's proxy into a gateway configuration.

Standard error lists what has no counterpart, and the environment variables that the result needs.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from gateway import configuration
from gateway.configuration.file import parsed
from gateway.configuration.litellm.convert import convert
from gateway.configuration.litellm.source import ImportRefusedError
from webhooks_core.management.printable import printable

MAX_BYTES = 1_048_576
HEADING = "# From a config.yaml of LiteLLM, by manage.py import_litellm_config.\n"


class _Dumper(yaml.SafeDumper):
    """Repeats what is equal: an anchor of YAML is hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a config.yaml of LiteLLM")
        parser.add_argument(
            "--output", type=Path, help="the file to create; else standard output"
        )

    def handle(
        self, *args: Any, file: Path, output: Path | None, **options: Any
    ) -> None:
        try:
            if file.exists() and file.stat().st_size > MAX_BYTES:
                raise CommandError(f"{file}: is over {MAX_BYTES} bytes")
            imported = convert(parsed(file)[1])
        except configuration.ConfigurationError as error:
            raise CommandError(str(error)) from error
        except ImportRefusedError as fault:
            raise CommandError(f"{file}: {fault}") from fault
        text = HEADING + yaml.dump(
            imported.configuration, Dumper=_Dumper, sort_keys=False, allow_unicode=True
        )
        if output is None:
            self.stdout.write(text, ending="")
        else:
            _create(output, text)
        for note in imported.notes:
            self.stderr.write(printable(note), str)
        if imported.variables:
            names = ", ".join(imported.variables)
            self.stderr.write(f"The environment needs {names}.", str)


def _create(path: Path, text: str) -> None:
    """Create a file. Raises CommandError, also if there is one of this name."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
