"""The one table of the admin's pages: named, scrolling by keyboard, and its rows still escaped."""

from __future__ import annotations

from django.conf import settings
from django.template import Context, Template

from tests.webhooks_core.admin.looking import SCRIPT

REGION = '<div class="scroll" tabindex="0" role="region" aria-label="Sums">'


def rendered(arguments: str, cell: str) -> str:
    text = f"{{% load tables %}}{{% table {arguments} %}}<td>{{{{ cell }}}}</td>{{% endtable %}}"
    return Template(text).render(Context({"cell": cell}))


def test_a_table_is_named_and_has_its_headings():
    text = rendered('"Sums" "One" "Two"', "3")
    assert REGION in text
    assert text.index('<th scope="col">One</th>') < text.index('scope="col">Two</th>')
    assert text.index("</thead>") < text.index("<tbody>") < text.index("<td>3</td>")


def test_a_table_without_headings_has_no_head():
    text = rendered('"Sums"', "3")
    assert REGION in text
    assert "<thead>" not in text


def test_the_content_of_a_row_is_escaped_once():
    text = rendered('"Sums"', SCRIPT)
    assert SCRIPT not in text
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in text


def test_every_page_uses_the_shared_table():
    written = [
        path.name
        for path in (settings.BASE_DIR / "webhooks_core/templates/admin").rglob(
            "*.html"
        )
        if 'class="scroll"' in path.read_text()
    ]
    assert written == ["table.html"]
