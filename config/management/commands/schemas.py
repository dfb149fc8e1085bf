"""Write the public contracts in docs/api from the code, or check that they are equal."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from io import StringIO
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from config.operations.api_docs import openapi


def catalog_sdl() -> str:
    output = StringIO()
    call_command("graphql_schema", stdout=output)
    return output.getvalue()


CONTRACTS: dict[str, Callable[[], str]] = {
    "openapi.json": openapi,
    "catalog.graphql": catalog_sdl,
}


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="write nothing; fail on a difference"
        )

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        folder = settings.BASE_DIR / "docs" / "api"
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in CONTRACTS.items():
            file, fresh = folder / name, make()
            if check and (
                not file.exists() or file.read_text(encoding="utf-8") != fresh
            ):
                raise CommandError(
                    f"docs/api/{name} differs from the code: run `manage.py schemas`"
                )
            if not check:
                file.write_text(fresh, encoding="utf-8")
