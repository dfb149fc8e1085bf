"""docs/settings.md and config/settings.py name the same variables."""

import re

from django.conf import settings

from tests.docs.samples import DOCS

ROW = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)
READ = re.compile(r"env\.\w+\(\s*\"([A-Z_]+)\"")


def test_every_variable_is_documented_and_no_other():
    source = (settings.BASE_DIR / "config" / "settings.py").read_text()
    documented = ROW.findall((DOCS / "settings.md").read_text())
    assert sorted(documented) == sorted(READ.findall(source))
