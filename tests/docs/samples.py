"""Code samples of the documentation, by the name behind their language."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


def sample(page: str, language: str, name: str) -> str:
    """Return the code of a block that opens with ```language name."""
    text = (DOCS / page).read_text()
    found = re.search(
        rf"^```{language} {name}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    )
    assert found, f"docs/{page} has no sample {language} {name}"
    return found.group(1)
