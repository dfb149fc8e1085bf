"""Write every book to a CSV or JSON Lines file that import_catalog reads."""

from __future__ import annotations

from pathlib import Path

from catalog import bulk
from catalog.management.files import FileCommand


class Command(FileCommand):
    help = __doc__
    done = "written"

    def run(self, file: Path) -> int:
        draft = file.with_name(f"{file.name}.part")
        with draft.open("w", encoding="utf-8", newline="") as target:
            try:
                written = bulk.dump(target, file.suffix)
                target.close()
                draft.replace(file)
            finally:
                draft.unlink(missing_ok=True)
        return written
