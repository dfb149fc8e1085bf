"""Examine this deployment, and say what to do about each fault."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import orjson
from django.core.management.base import BaseCommand

from config.operations import doctor
from config.operations.reach import Finding, Level
from webhooks_core.management.output import counted


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()  # it reports them itself

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--reach",
            action="store_true",
            help="also send requests to BASE_URL, like an outside client",
        )
        parser.add_argument(
            "--strict", action="store_true", help="exit with 1 on warnings too"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(
        self, *args: Any, reach: bool, strict: bool, json: bool, **options: Any
    ) -> None:
        findings = list(doctor.examine(include_reach=reach))
        faults = {Level.FAILED, Level.WARNING} if strict else {Level.FAILED}
        is_ok = not any(finding.level in faults for finding in findings)
        if json:
            document = {"ok": is_ok, "findings": [row._asdict() for row in findings]}
            self.stdout.write(orjson.dumps(document).decode())
        else:
            for name, level, message in findings:
                self.stdout.write(f"{level:<8} {name:<15} {message}")
            self.stdout.write(_verdict(findings, is_ok=is_ok))
        if not is_ok:
            sys.exit(1)


def _verdict(findings: Sequence[Finding], *, is_ok: bool) -> str:
    warnings = sum(finding.level == Level.WARNING for finding in findings)
    if not is_ok:
        return "Not well: see above."
    if warnings:
        return f"It works, with {counted(warnings, 'warning')}."
    return "All is well."
