"""HTML summaries as Markdown: the same text, and nothing that the page does not have."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from webhooks_core.web.markdown import LONGEST, escaped, from_html

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


class Page(HTMLParser):
    """What of a page can be seen: its text without white space, elements, addresses."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.addresses: list[str] = []
        self._text: list[str] = []
        self.feed(source)
        self.close()

    @property
    def text(self) -> str:
        return re.sub(r"\s+", "", "".join(self._text))

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        values = dict(attrs)
        self.addresses += [
            values[name] for name in ("href", "src") if values.get(name) is not None
        ]

    def handle_data(self, data):
        self._text.append(data)

    def handle_comment(self, data):
        self.elements.add("comment")

    handle_decl = handle_pi = unknown_decl = handle_comment


def rendered(source: str) -> Page:
    content = from_html(source)
    assert content is not None
    return Page(RENDERER.render(content))


@pytest.mark.spec("recording", "HTML to Markdown: text escaped in HTML is escaped")
@pytest.mark.spec("recording", "HTML to Markdown: escapes are minimal")
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Ship it & rest", "Ship it & rest"),
        ("AT&T; Q&A &copy; &#38;", "AT\\&T; Q&A \\&copy; \\&#38;"),
        ("1 < 2 > 1 <b> </b> <3", "1 < 2 > 1 \\<b> \\</b> <3"),
        ("2 * 3 * 4 and *a*", "2 * 3 * 4 and \\*a\\*"),
        ("snake_case_name _a_ __init__", "snake_case_name \\_a\\_ \\_\\_init\\_\\_"),
        ("so ~5 min ~~a~~", "so ~5 min \\~\\~a\\~\\~"),
        ("`a` [a](b) [a]: b", "\\`a\\` \\[a\\](b) \\[a\\]: b"),
        ("C:\\dir \\*", "C:\\\\dir \\\\\\*"),
        ("a | b # c + d - e = f! 1. 2)", "a | b # c + d - e = f! 1. 2)"),
        ("# a", "\\# a"),
        ("#1 and -1, +1", "#1 and -1, +1"),
        ("- a", "\\- a"),
        ("1. a", "1\\. a"),
        ("1.5 a", "1.5 a"),
        ("https://x.y/a-b_c?d=1&e=2+3#f.g", "https://x.y/a-b_c?d=1&e=2+3#f.g"),
    ],
)
def test_what_would_be_markup_is_escaped_and_nothing_else(text, content):
    assert from_html(f"<p>{html.escape(text)}</p>") == content + "\n"
    assert escaped(text) == content
    for before, after in (("<ul><li>", "- "), ("<blockquote>", "> ")):
        assert from_html(before + html.escape(text)) == f"{after}{content}\n"
    for around in ("h2", "td", "b", "del", 'a href="https://x"'):
        page = rendered(f"<p>x <{around}>{html.escape(text)}</{around[:3]}")
        assert page.text == "x" + re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    "start",
    [
        *("# a", "- a", "+ a", "* a", "1. a", "2) a", "> a", "---", "===", "```"),
        *("    a", "|a|\n|-|", "-|-", ":-"),
    ],
)
def test_the_first_characters_of_a_line_are_text(start):
    for source in (start, f"x<br>{start}", f"x\n{start}"):
        page = rendered(f"<p>{html.escape(source).replace('&lt;br&gt;', '<br>')}</p>")
        assert page.elements <= {"p", "br"}
        assert page.text == re.sub(r"\s|<br>", "", source)


@pytest.mark.spec("recording", "HTML to Markdown: the same text, no other element")
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('<abbr title="<script>x</script>">a</abbr>', "a"),
        ('<a href="https://x" title="b\n\n<script>x</script>">a</a>', "a"),
        ('<img src="https://x" alt="<script>">', "<script>"),
        ('<pre><code class="language-a`b&lt;s>">&lt;script&gt;</code></pre>', "<script>"),
        ("<blockquote cite='<script>'>a</blockquote>", "a"),
        ('<a href="https://x/ <script>x</script>">a</a>', "a"),
        ("<svg><script>x</script><text>&lt;script></text></svg>a", "a"),
        ("<mark>&lt;script></mark><kbd>`&lt;script></kbd>", "<script>`<script>"),
        ("<iframe srcdoc='<script>'></iframe><video title='<script>'></video>a", "a"),
        ("&lt;<span>script></span>", "<script>"),
        ("<ol start='<script>'><li lang='<script>'>a", "a"),
        ("<td><table><tr><td>&lt;b>|<a href=https://x>|&lt;b></table>a", "<b>||<b>a"),
        ("<h2>&lt;b><i>_a_</i></h2><del>&lt;b></del>", "<b>_a_<b>"),
        ("<input value='<script>'><base href='javascript:1'><meta content=x>a", "a"),
        ("x<!-->y<!-- <b> -->z</>u<?q?>v<a b='>'>w</a><script>'</p>'</script >t", "xyzuvwt"),
        ("<p>a<p hidden>b</p>c<p style='display: none'>d</p>e", "ace"),
        ("<b>a<i>b</i></b>c<li>d</ul></table>e", "abcde"),
        ("<a href=https://x>a](javascript:1)<b>[</b></a>", "a](javascript:1)["),
        ("<pre>```\n&lt;script></pre>", "```<script>"),
        ("<code>a`</code> <code>`` `</code>", "a````"),
    ],
)  # fmt: skip
def test_a_hostile_page_shows_its_text_and_no_element_of_its_attributes(source, text):
    page = rendered(f"<p>-</p>{source}")
    assert page.text == f"-{text}"
    known = (
        "p a pre code blockquote ol li table thead tbody tr th td h2 em b strong s ul"
    )
    assert page.elements <= {*known.split()}


@pytest.mark.spec("recording", "HTML to Markdown: other schemes lose their target")
@pytest.mark.parametrize(
    "address",
    [
        *("javascript:alert(1)", " JaVaScRiPt:alert(1)", "java\nscript:alert(1)"),
        *("java&#10;script:alert(1)", "java&Tab;script:alert(1)"),
        *("javascript&colon;alert(1)", "&amp;#106;avascript:alert(1)"),
        *("&#1;javascript:alert(1)", "\u200bjavascript:alert(1)"),
        *("data:text/html,<script>alert(1)</script>", "vbscript:x"),
        *("file:///etc/passwd", "ftp://x.y/z", "&" + "amp;" * 9 + "colon;"),
    ],
)
def test_a_link_elsewhere_keeps_its_text_and_loses_its_target(address):
    source = f'<a href="{address}">a_b</a><img src="{address}" alt="c">'
    page = rendered(f"<p>x {source} z</p><h2>{source}</h2>")
    assert (page.addresses, page.text) == ([], "xa_bcza_bc")
    assert page.elements == {"p", "h2"}


@pytest.mark.parametrize(
    "address",
    [
        *("https://x.y/a_b*c?d=1&e=2#f", "HTTP://x.y", "mailto:a@b.c", "/relative/a_b"),
        *("//x.y/z", "#part", "?q=a:b", "https://x.y/?a&copy;b"),
    ],
)
def test_links_to_the_web_mail_and_relative_ones_keep_their_target(address):
    for source in ("<p>{}</p>", "<p>Look!{}", "<ul><li>{}", "<td>{}"):
        page = rendered(source.format(f'<a href="{html.escape(address)}">a</a>'))
        assert page.addresses == [RENDERER.normalizeLink(address)]
        assert "img" not in page.elements


def test_lists_tables_and_code_blocks_keep_their_shape():
    source = (
        "<h2>t</h2><ul><li>a<ol><li>b</li><li>c<pre>d\n\n  e</pre></li></ol></li></ul>"
        "<table><tr><th>f|g</th><th>h</th></tr><tr><td><code>i|j</code></td><td>k<br>l</td></tr>"
        "</table><form><nav><b>n</b> <i>o</i> <s>p</s></nav></form><hr>"
    )
    page = rendered(source)
    assert page.elements >= {
        *[
            "h2",
            "ul",
            "ol",
            "li",
            "pre",
            "table",
            "td",
            "code",
            "strong",
            "em",
            "s",
            "hr",
        ]
    }
    assert page.text == "tabcdef|ghi|jklnop"


@pytest.mark.spec("recording", "conversion failures pass through unchanged")
@pytest.mark.parametrize(
    "source",
    [
        *("<ul><li>" * 50 + "x", "<b>" * 5_000 + "x", "<p>x" * 20_001),
        *("x" * (LONGEST + 1), "<blockquote>" * 30 + "x<br>" * 5_000, "a\0"),
        *("<p> <b></b><script>x</script>", "<!--" * 1_000),
    ],
    ids=range(8),
)
def test_what_cannot_be_converted_gives_nothing(source):
    assert from_html(source) is None
