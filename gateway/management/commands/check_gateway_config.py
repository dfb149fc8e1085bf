"""Check a gateway configuration file; report file, line and key of every error."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway import configuration
from gateway.chat.metering.price_list import unpriced
from webhooks_core.management.output import add_json_argument, counted, format_output

UNPRICED = (
    "\nA budget limits the cost of models that the public list has no price of: {}."
    " Without a price in the admin, they count at the highest price of their upstream."
)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a YAML file, as in GATEWAY_CONFIG")
        add_json_argument(parser)

    def handle(self, *args: Any, file: Path, json: bool, **options: Any) -> None:
        try:
            loaded = configuration.load(file)
        except configuration.ConfigurationError as error:
            raise CommandError(str(error)) from error
        values: dict[str, Any] = {
            "file": str(file),
            "subscriptions": len(loaded.webhooks.subscriptions),
            "models": len(loaded.models),
            "budgets": len(loaded.budgets),
            "without_price": unpriced(loaded),
        }
        counts = (
            counted(values["subscriptions"], "static subscription"),
            counted(values["models"], "model"),
            counted(values["budgets"], "budget"),
        )
        text = f"{file}: sound; {', '.join(counts)}"
        if names := values["without_price"]:
            text += UNPRICED.format(", ".join(names))
        self.stdout.write(format_output(values, text, as_json=json))
