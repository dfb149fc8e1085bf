"""Count the ingested documents."""

from __future__ import annotations

from typing import Any

from gateway.models import Document
from webhooks_core.management.output import JSONCommand, format_output


class Command(JSONCommand):
    help = __doc__

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        count = Document.objects.count()
        words = f"{count} documents"
        self.stdout.write(format_output({"documents": count}, words, as_json=json))
