"""Look at this deployment from every side, and say what to do about what is not well."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

import orjson
from django.core.management.base import BaseCommand

from config.operations import doctor
from config.operations.reach import Level


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()  # it tells them itself

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--reach", action="store_true", help="ask BASE_URL too, as a client would"
        )
        parser.add_argument(
            "--strict", action="store_true", help="exit with 1 on warnings too"
        )
        parser.add_argument("--json", action="store_true", help="for machines")

    def handle(
        self, *args: Any, reach: bool, strict: bool, json: bool, **options: Any
    ) -> None:
        findings = list(doctor.examine(reach=reach))
        bad = {Level.FAILED, Level.WARNING} if strict else {Level.FAILED}
        well = not any(it.level in bad for it in findings)
        if json:
            told = [it._asdict() for it in findings]
            answer = orjson.dumps({"ok": well, "findings": told}).decode()
            self.stdout.write(answer)
        else:
            for it in findings:
                self.stdout.write(f"{it.level:<8} {it.name:<15} {it.told}")
            self.stdout.write("All is well." if well else "Not well: see above.")
        if not well:
            sys.exit(1)
