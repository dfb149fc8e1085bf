"""The command line: the usage of a command shows its own arguments alone."""

from __future__ import annotations

import sys
from argparse import Action
from collections.abc import Iterable
from functools import partial
from typing import Any

from django.core.management import ManagementUtility
from django.core.management.base import BaseCommand, DjangoHelpFormatter

from webhooks_core.management.printable import PrintableOutput

# Django's own commands colour their texts themselves.
OWN = {"config", "catalog", "recording", "gateway", "webhooks_core"}


class HelpFormatter(DjangoHelpFormatter):
    """Leaves the options that every command has out of the usage; --help lists them last."""

    def add_usage(
        self, usage: str | None, actions: Iterable[Action], *args: Any, **kwargs: Any
    ) -> None:
        own, _ = self._split(actions)
        super().add_usage(usage, own, *args, **kwargs)

    def add_arguments(self, actions: Iterable[Action]) -> None:
        own, common = self._split(actions)
        super().add_arguments(own)
        if common:
            self.end_section()
            self.start_section("options of every command")
            super().add_arguments(common)

    def _split(self, actions: Iterable[Action]) -> tuple[list[Action], list[Action]]:
        """Return a command's own arguments, and those of every command."""
        own: list[Action] = []
        common: list[Action] = []
        for action in actions:
            is_common = not self.show_last.isdisjoint(action.option_strings)
            (common if is_common else own).append(action)
        return own, common


class CommandLine(ManagementUtility):
    """Runs every command of this project, also Django's, with the formatter above."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = super().fetch_command(subcommand)
        create_parser = partial(command.create_parser, formatter_class=HelpFormatter)
        command.create_parser = create_parser  # type: ignore[method-assign]
        if type(command).__module__.partition(".")[0] in OWN:
            _print_no_control_characters(command)
        return command


def _print_no_control_characters(command: BaseCommand) -> None:
    """Escape what a terminal would obey: values and errors may come from files and strangers."""
    command.stdout = PrintableOutput(sys.stdout)
    command.stderr = PrintableOutput(sys.stderr)
    command.stderr.style_func = command.style.ERROR
