"""The documentation site (`make docs`): Sphinx reads the Markdown pages from the repository's root.

docs/README.md is the index: each of its sections becomes a part of the navigation, in the order of
its links.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
project = "Signpost"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "version"
]
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/*.md"]
root_doc = "docs/README"
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # samples with … and [options]
nitpicky = True

html_theme = "furo"  # light and dark, system fonts, nothing from other hosts
html_title = f"Signpost {version}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["tables.css"]

LINK = re.compile(r"\]\(([^)#\s]+)\.md\)")
# A picture for light and for dark, as GitHub shows it. The site shows the light one.
PICTURE = re.compile(r'<picture>\n<source .+>\n<img alt="(.+)" src="(.+)">\n</picture>')


def navigation(index: str) -> str:
    """Return a table of contents for each section of the index."""
    parts = []
    for section in index.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        pages = "\n".join(dict.fromkeys(LINK.findall(body)))
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n")
    return "\n".join(parts)


def extend(_app: Any, name: str, source: list[str]) -> None:
    """Show one picture, and append the navigation to the index."""
    source[0] = PICTURE.sub(r"![\1](\2)", source[0])
    if name == root_doc:
        source[0] += "\n" + navigation(source[0])


def setup(app: Any) -> None:
    """Connect the function above with Sphinx."""
    app.connect("source-read", extend)
