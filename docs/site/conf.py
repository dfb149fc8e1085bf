"""The documentation site (`make docs`): Sphinx reads the Markdown pages from the repository's root.

docs/README.md is the index: each of its sections becomes a part of the navigation, in the order of
its links. So do those of docs/adr/README.md, below its page. The two reference pages of docs/api get their content from docs/api by reference.py.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import reference

ROOT = Path(__file__).resolve().parents[2]
project = "Signpost"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "version"
]
extensions = ["myst_parser"]
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    "CODE_OF_CONDUCT.md",
    *("docs/**.md", "clients/*/README.md"),
]
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

INDEXES = ("docs/README", "docs/adr/README")
LINK = re.compile(r"\]\(([^)#\s]+)\.md\)")
# A link whose text is the name of the file, as it is good to read on GitHub.
FILE_LINK = re.compile(
    r"\[[\w./-]+\.md\]\((?P<path>[\w./-]+\.md)(?P<anchor>#[\w-]+)?\)"
)
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


def titled(link: re.Match[str], folder: Path) -> str:
    """Return a link with the title of its page as the text."""
    path, anchor = link["path"], link["anchor"] or ""
    title = (folder / path).read_text().partition("\n")[0].removeprefix("# ")
    return f"[{title}]({path}{anchor})"


def extend(_app: Any, name: str, source: list[str]) -> None:
    """Let links show titles of pages, and append what is generated to the text of a page."""
    folder = (ROOT / name).parent
    source[0] = PICTURE.sub(r"![\1](\2)", source[0])
    source[0] = FILE_LINK.sub(lambda link: titled(link, folder), source[0])
    if name in INDEXES:
        source[0] += "\n" + navigation(source[0])
    elif name in reference.PAGES:
        source[0] += "\n" + reference.PAGES[name]()


def add_start_page(app: Any, _error: Exception | None) -> None:
    """Let the folder of the site open at the index."""
    target = f'<meta http-equiv="refresh" content="0; url={root_doc}.html">\n'
    (Path(app.outdir) / "index.html").write_text(target)


def setup(app: Any) -> None:
    """Connect the functions above with Sphinx."""
    app.connect("source-read", extend)
    app.connect("build-finished", add_start_page)
