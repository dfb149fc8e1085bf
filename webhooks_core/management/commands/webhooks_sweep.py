"""Repair what a crash left behind, and remove what is older than the retention."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

import orjson
from django.core.management.base import BaseCommand

from webhooks_core.dispatch.sweep import sweep


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="for machines")

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        swept = asdict(sweep())
        if json:
            self.stdout.write(orjson.dumps(swept).decode())
            return
        self.stdout.write(
            "{buried} dead workers, {rung} forgotten endpoints, {removed} old events".format(
                **swept
            )
        )
