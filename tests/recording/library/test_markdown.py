"""HTML summaries as Markdown: the same text, and nothing that the page does not have."""

import html
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from recording.library.markdown import LONGEST, MOST_MARKS, escaped, from_html

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
        attributes = dict(attrs)
        self._text.append(attributes.get("alt") or "")
        names = ("href", "src")
        self.addresses += [attributes[name] for name in names if attributes.get(name)]

    def handle_data(self, data):
        self._text.append(data)

    def handle_comment(self, data):
        self.elements.add("comment")


def rendered(source: str) -> Page:
    content = from_html(source)
    assert content is not None
    return Page(RENDERER.render(content))


# ── Hostile pages ───────────────────────────────────────────────────────────────────

ABOUT_MARKUP = st.text(alphabet="ab1 \n#*_`~[]()<>&;!|\\-+=.:", min_size=1)


@given(text=ABOUT_MARKUP.filter(str.strip))
@pytest.mark.spec("recording", "HTML to Markdown: text escaped in HTML is escaped")
@pytest.mark.spec("recording", "HTML to Markdown: the same text, no other element")
def test_text_about_markup_stays_text(text):
    for before, after, elements in (
        ("<p>", "</p>", {"p"}),
        ("<ul><li>", "</li></ul>", {"ul", "li"}),
        ("<b>x</b> ", "", {"p", "strong"}),
    ):
        page = rendered(f"{before}{html.escape(text)}{after}")
        assert page.elements <= {*elements, "p", "br"}
        assert page.text.removeprefix("x") == re.sub(r"\s+", "", text)


@pytest.mark.parametrize(
    ("source", "elements", "addresses"),
    [
        ("<script>alert(1)</script>x", {"p"}, []),
        ("<SCRIPT SRC=//evil.example></SCRIPT>x", {"p"}, []),
        ("<b onclick=alert(1)>x</b>", {"p", "strong"}, []),
        ("<style>@import '//evil.example'</style>x", {"p"}, []),
        ("<iframe src=//evil.example>a</iframe>x", {"p"}, []),
        ("<svg onload=alert(1)></svg>x", {"p"}, []),
        ("<!-- <b> -->x<!--><img src=x>-->", {"p", "img"}, ["x"]),
        ("&lt;script&gt;x&lt;/script&gt;", {"p"}, []),
        ("&amp;lt;b&amp;gt;x", {"p"}, []),
        ("<p>![x](javascript:alert(1))</p>", {"p"}, []),
        ("<p>&lt;javascript:alert(1)&gt;</p>", {"p"}, []),
        ('<img src="//a" alt="](x) [y](javascript:z)">', {"p", "img"}, ["//a"]),
        ('<img src=x alt="<script>">', {"p", "img"}, ["x"]),
        ('<a href="http://a/)[b](javascript:c)">x</a>', {"p", "a"}, None),
        ('<a href="http://a/ &quot;onclick=&quot;b">x</a>', {"p", "a"}, None),
        ('<a href="http://a" title="](javascript:b)">x</a>', {"p", "a"}, ["http://a"]),
        ("<pre>```\n# x\n&lt;script&gt;</pre>", {"pre", "code"}, []),
        ("<code>``x`&lt;b&gt;</code>", {"p", "code"}, []),
        ("<p>a<br>===<br># x<br>- y<br>1. z</p>", {"p", "br"}, []),
        ("<p>1<i></i>. x</p><p>#<i></i> x</p>", {"p"}, []),
        ("<td colspan=99999999>x", {"p"}, []),
        ("<table><tr><td>a|b&lt;br&gt;</table>", None, []),
        ('<p>!<a href="https://x">a</a></p>', {"p", "a"}, ["https://x"]),
    ],
)  # fmt: skip
def test_a_hostile_page_has_no_other_element_and_no_other_address(
    source, elements, addresses
):
    page = rendered(source)
    assert "script" not in page.elements
    assert elements is None or page.elements <= elements
    assert addresses is None or page.addresses == addresses
    assert all(
        address.startswith("http://a/") for address in page.addresses if not addresses
    )


@pytest.mark.spec("recording", "HTML to Markdown: other schemes lose their target")
@pytest.mark.parametrize(
    "address",
    [
        *("javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)"),
        *("java\nscript:alert(1)", "java&Tab;script:alert(1)", "&#106;avascript:a(1)"),
        *("javascript&colon;alert(1)", "vbscript:x"),
        *("data:text/html,<script>alert(1)</script>", "file:///etc/passwd", "ftp://x"),
    ],
)
def test_a_link_elsewhere_keeps_its_text_and_loses_its_target(address):
    for source in (f'<a href="{address}">a_b</a>', f'<img src="{address}" alt="a_b">'):
        page = rendered(f"<p>x {source} z</p>")
        assert (page.addresses, page.text) == ([], "xa_bz")


@pytest.mark.parametrize(
    "address",
    [
        *("https://x.y/a_b*c?d=1&e=2#f", "mailto:a@b.c", "/relative/a_b", "//x.y/z"),
        *("#part", "?q=a", "https://bücher.example/straße"),
    ],
)
def test_links_to_the_web_mail_and_relative_ones_keep_their_target(address):
    source = f'<a href="{html.escape(address)}">a</a>'
    assert rendered(source).addresses == [RENDERER.normalizeLink(address)]


# ── Readable ────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "HTML to Markdown: escapes are minimal")
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Ship it & rest", "Ship it & rest"),
        ("AT&T; Q&A &copy; &", "AT\\&T; Q&A \\&copy; &"),
        ("1 < 2 > 1 <b> </b> <3", "1 < 2 > 1 \\<b> \\</b> <3"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("*a* and a*b*c", "\\*a\\* and a\\*b\\*c"),
        ("snake_case_name _a_", "snake_case_name \\_a\\_"),
        ("~5 min, ~~a~~", "~5 min, \\~\\~a\\~\\~"),
        ("a ` b `c`", "a ` b \\`c\\`"),
        ("[a](b)", "\\[a\\](b)"),
        ("C:\\dir \\* a\\", "C:\\dir \\\\\\* a\\\\"),
        ("a | b # c + d - e = f! 1. 2)", "a | b # c + d - e = f! 1. 2)"),
        ("# a", "\\# a"),
        ("#1 and -1, +1", "#1 and -1, +1"),
        ("- a", "\\- a"),
        ("1. a", "1\\. a"),
        ("1.5 a", "1.5 a"),
        ("https://x.y/a-b_c?d=1&e=2+3#f.g", "https://x.y/a-b_c?d=1&e=2+3#f.g"),
    ],
)
def test_only_what_would_be_markup_is_escaped(text, content):
    assert from_html(f"<p>{html.escape(text)}</p>") == content + "\n"


def test_nested_lists_tables_and_code_blocks_keep_their_shape():
    source = (
        "<h2>C#</h2><ul><li>a<ul><li>b</li></ul></li></ul><pre>d\n\n  e</pre>"
        "<table><tr><th>f|g</th></tr><tr><td>k</td></tr></table><p><b>l</b>"
    )
    assert from_html(source) == (
        "## C#\n\n- a\n  - b\n\n```\nd\n\n  e\n```\n\n| f\\|g |\n| --- |\n| k |\n\n**l**\n"
    )


@given(text=ABOUT_MARKUP.filter(str.strip))
def test_a_plain_text_is_one_line_that_shows_it(text):
    page = Page(RENDERER.render(f"x {escaped(text)}"))
    assert page.elements == {"p"}
    assert page.text == "x" + re.sub(r"\s+", "", text)


# ── What passes through ─────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "conversion failures pass through unchanged")
@pytest.mark.parametrize(
    ("_case", "source"),
    [
        ("10,000 lists", "<ul><li>" * 4_000 + "x"),
        ("a hundred quotes", "<blockquote>" * 100 + "x"),
        ("too many elements", "<p>x" * (MOST_MARKS + 1)),
        ("longer than the limit", "x" * (LONGEST + 1)),
        ("ends of what never began", "<blockquote></b>" * 300 + "x\n" * 1_000),
        ("deep and long", "<blockquote>" * 50 + "x\n" * 100_000),
        ("much white space", " " * 100_000 + "x"),
        ("many no-break spaces", "\xa0" * 100_000 + "x"),
        ("many items", "<ol>" + "<li>x" * 10_000),
        ("nothing to read", "<p> <b></b><script>x</script>"),
    ],
)
def test_what_cannot_be_converted_gives_nothing(_case, source):
    assert from_html(source) is None


@pytest.mark.parametrize(
    "unit",
    [
        *("<b>x</b> ", "<b><i></b>x", "<p hidden>x", "<", "<a", "<!--", '<a b="', "&"),
        *("*a ", "[", "[x]:<br>", "\\", "` ", "<td colspan=9999>x", "<code>`</code>x"),
    ],
)
def test_a_repeated_text_takes_space_in_proportion(unit):
    content = from_html(unit * 1_000 + "x")
    assert content is None or len(content) < 8 * len(unit) * 1_000
