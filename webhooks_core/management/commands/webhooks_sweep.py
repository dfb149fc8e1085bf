"""Repair what a crash left behind, and remove what is older than the retention."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from webhooks_core.cli.output import answer, offer_json
from webhooks_core.dispatch.sweep import sweep


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        offer_json(parser)

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        swept = asdict(sweep())
        words = (
            "{buried} dead workers, {rung} forgotten endpoints, {removed} old events"
        )
        self.stdout.write(answer(swept, words.format(**swept), as_json=json))
