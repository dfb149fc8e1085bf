"""HTML summaries as Markdown: the same text, and nothing that the page does not have."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from webhooks_core.web import markdown
from webhooks_core.web.markdown import LONGEST, from_html

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
SAME = {"b": "strong", "i": "em", "del": "s", "th": "td"}
# Markdown has no text outside of a paragraph, no table without a head, no other <pre>.
IMPLIED = {"p", "thead", "tbody"}


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
        self.elements.add(SAME.get(tag, tag))
        attributes = dict(attrs)
        self._text.append(attributes.get("alt") or "")
        self.addresses += [
            attributes[name] for name in ("href", "src") if attributes.get(name)
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


WORDS = (
    "a b é 語 “ € _ * ** *** ` `` ``` ~ ~~ < > & &lt; &copy; [ ] ( ) ! ![ # | \\ = - $ ^ : "
    "](javascript:1) <b> </b> <script> <!-- --> <?x http://a.b/c_d?e=1&f=2 www.x.y 1. 2) |-|"
)
SPECIAL = st.sampled_from(
    [
        *WORDS.split(),
        *"*_~`[]()<>&|#=+-.!\\:1;/",
        " ",
        "    ",
        "\n",
        "\t",
        "\xa0",
        "\\\n",
    ]
)
TEXT = st.lists(SPECIAL, min_size=1, max_size=6).map("".join).map(html.escape)
LEAF = TEXT | st.sampled_from(
    [
        "<br>",
        '<img src="https://x/y" alt="a&lt;i&gt;_b_ *c* |">',
        '<img src="javascript:1" alt="# &lt;b&gt;">',
    ]
)


def joined(parts, most=3):
    return st.lists(parts, min_size=1, max_size=most).map("".join)


def inside(tags, content):
    pairs = st.tuples(st.sampled_from(tags), content)
    return pairs.map(lambda pair: f"<{pair[0]}>{pair[1]}</{pair[0].split()[0]}>")


INLINE = st.recursive(
    LEAF,
    lambda children: (
        joined(children)
        | inside(
            [
                *("b", "strong", "i", "em", "del", "span", "code"),
                'a href="https://x.y/(z" title="a&quot;\\"',
                'a href="javascript:1"',
            ],
            joined(children),
        )
    ),
    max_leaves=6,
)
TABLE = inside(["table"], joined(inside(["tr"], joined(inside(["td"], TEXT)))))
BLOCK = st.recursive(
    INLINE,
    lambda children: (
        joined(children)
        | inside(["h1", "h3", "pre"], INLINE)
        | inside(["p", "div", "blockquote", "section"], children)
        | inside(["ul", "ol"], joined(inside(["li"], children)))
        | TABLE
    ),
    max_leaves=5,
)


@pytest.mark.spec("recording", "HTML to Markdown: the same text, no other element")
@given(source=BLOCK)
def test_the_markdown_shows_the_text_of_the_page_and_no_other_element(source):
    content = from_html(source)
    if content is None:
        return  # blank: the original is sent
    page, markdown_page = Page(source), Page(RENDERER.render(content))
    implied = IMPLIED | ({"code"} if "pre" in page.elements else set())
    assert markdown_page.text == page.text
    assert markdown_page.elements - page.elements <= implied
    assert "javascript:1" not in markdown_page.addresses


@pytest.mark.spec("recording", "HTML to Markdown: text escaped in HTML is escaped")
def test_text_about_markup_stays_text():
    source = (
        "<p>She wrote &lt;script&gt;alert(1)&lt;/script&gt; and snake_case_name,"
        " _not italic_</p>"
    )
    assert from_html(source) == (
        "She wrote \\<script>alert(1)\\</script> and snake_case_name,"
        " \\_not italic\\_\n"
    )


@pytest.mark.parametrize(
    "start",
    [
        "# a",
        "- a",
        "+ a",
        "* a",
        "1. a",
        "2) a",
        "> a",
        "---",
        "===",
        "```",
        "    a",
        "|a|\n|-|",
    ],
)
def test_the_first_characters_of_a_line_are_text(start):
    for source in (start, f"x<br>{start}", f"x\n{start}"):
        page = rendered(f"<p>{html.escape(source).replace('&lt;br&gt;', '<br>')}</p>")
        assert page.elements <= {"p", "br"}
        assert page.text == re.sub(r"\s|<br>", "", source)


@pytest.mark.parametrize(
    "source",
    [
        '<abbr title="<script>x</script>">a</abbr>',
        '<a href="https://x" title="<script>x</script>"></a>a',
        '<a href="https://x" title="b\n\n<script>x</script>">a</a>',
        '<img src="https://x" alt="<script>x</script>">',
        '<pre><code class="language-a`b">&lt;script&gt;</code></pre>',
        "<blockquote cite='<script>'>a</blockquote>",
        '<a href="https://x/ <script>x</script>">a</a>',
        "<svg><script>x</script><text>&lt;script></text></svg>a",
        "<mark>&lt;script></mark><kbd>`&lt;script></kbd>",
        "<iframe srcdoc='<script>'></iframe><video src='https://x' title='<script>'></video>a",
    ],
)
def test_no_attribute_becomes_markup(source):
    page = rendered(source)
    assert "script" not in page.elements
    assert page.elements <= {"p", "a", "img", "pre", "code", "blockquote"}


@pytest.mark.spec("recording", "HTML to Markdown: other schemes lose their target")
@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "java&#10;script:alert(1)",
        "java&Tab;script:alert(1)",
        "javascript&colon;alert(1)",
        "&#106;avascript:alert(1)",
        "&amp;#106;avascript:alert(1)",
        "\x01javascript:alert(1)",
        "&#1;javascript:alert(1)",
        "\u200bjavascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "data:image/png;base64,AAAA",
        "vbscript:x",
        "file:///etc/passwd",
        "ftp://x.y/z",
        "tel:+1",
        "blob:https://x.y/z",
        "&" + "amp;" * 9 + "colon;",
    ],
)
def test_a_link_elsewhere_keeps_its_text_and_loses_its_target(address):
    for source in (f'<a href="{address}">a_b</a>', f'<img src="{address}" alt="a_b">'):
        page = rendered(f"<p>x {source} z</p><h2>{source}</h2>")
        assert (page.addresses, page.text) == ([], "xa_bza_b")
        assert page.elements == {"p", "h2"}


@pytest.mark.parametrize(
    "address",
    [
        "https://x.y/a_b*c?d=1&e=(2)#f[g]",
        "HTTP://x.y",
        "mailto:a@b.c",
        "/relative/a_b",
        "//x.y/z",
        "#part",
        "?q=a:b",
        "https://x.y/?a&copy;b&lt;c",
        "https://bücher.example/straße",
    ],
)
def test_links_to_the_web_mail_and_relative_ones_keep_their_target(address):
    source = f'<a href="{html.escape(address)}">a</a>'
    assert rendered(source).addresses == [RENDERER.normalizeLink(address)]


def test_an_anchor_and_an_image_without_address_are_text():
    source = '<a name="x">a</a> <a href="">b</a> <img alt="c*"> <img src="" alt="d">'
    assert from_html(f"<p>{source}</p>") == "a b c* d\n"


def test_a_bare_url_stays_as_it_was():
    url = "https://x.y/a-b_c?d=1&e=2+3#f.g"
    assert from_html(f"<p>see {html.escape(url)}, _so_</p>") == f"see {url}, \\_so\\_\n"


@pytest.mark.parametrize(
    ("source", "content"),
    [
        ("<b>a</b><b>b</b> <i>c</i><b>d</b>", "**ab** *c***d**"),
        ('a<b>"b"</b>c <b>"d"</b> <i>e:</i> f', 'a"b"c **"d"** *e:* f'),
        ("<b>a<br><br>b</b>", "**a**\n\n**b**"),
        ("<b>a <i>b</i></b> <i><i>c</i></i>", "**a *b*** *c*"),
        ("<b>a<ul><li>b</li></ul></b>", "**a**\n\n- **b**"),
        ("<code>a</code><code>`</code>", "`` a` ``"),
        ("<code>a</code><b><code>b</code></b>", "`ab`"),
        ("<details><summary>a</summary>b</details>", "a\n\nb"),
    ],
)
def test_emphasis_is_written_where_markdown_reads_it(source, content):
    assert from_html(source) == content + "\n"


def test_nested_lists_tables_and_code_blocks_keep_their_shape():
    source = (
        "<ul><li>a<ol><li>b</li><li>c<pre>d\n\n  e</pre></li></ol></li></ul>"
        "<table><tr><th>f|g</th><th>h</th></tr><tr><td><code>i|j</code></td><td>k<br>l</td></tr>"
        "</table><!-- m --><form><nav>n</nav></form>"
    )
    page = rendered(source)
    assert page.elements >= {"ul", "ol", "li", "pre", "table", "td", "code"}
    assert page.text == "abcdef|ghi|jkln"
    assert (from_html(source) or "").startswith("- a\n  1. b\n  2. c\n")


@pytest.mark.spec("recording", "HTML to Markdown: escapes are minimal")
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Ship it & rest", "Ship it & rest"),
        ("AT&T; Q&A &copy; &#38; &#x; &", "AT\\&T; Q&A \\&copy; \\&#38; &#x; &"),
        ("1 < 2 > 1 <b> </b> <3", "1 < 2 > 1 \\<b> \\</b> <3"),
        ("2 * 3 * 4, a*, 5*", "2 * 3 * 4, a*, 5*"),
        ("*a* and a*b*c", "\\*a\\* and a\\*b\\*c"),
        ("snake_case_name _a_ __init__", "snake_case_name \\_a\\_ \\_\\_init\\_\\_"),
        ("~5 min", "~5 min"),
        ("~~a~~", "\\~\\~a\\~\\~"),
        ("a ` b", "a ` b"),
        ("`a`", "\\`a\\`"),
        ("[a] (b) f[0], [a](b)", "[a] (b) f[0], [a\\](b)"),
        ("[a]: b", "\\[a]: b"),
        ("C:\\dir \\* a\\", "C:\\dir \\\\* a\\\\"),
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
    for before, after in (("<ul><li>", "- "), ("<blockquote>", "> ")):
        assert from_html(before + html.escape(text)) == f"{after}{content}\n"


@pytest.mark.spec("recording", "HTML to Markdown: escapes are minimal")
@pytest.mark.parametrize(
    ("text", "content"),
    [("F# and C#", "F# and C#"), ("C ##", "C \\##"), ("# C", "# C"), ("#", "\\#")],
)
def test_only_signs_that_would_end_a_heading_are_escaped(text, content):
    assert from_html(f"<h2>{text}</h2>") == f"## {content}\n"
    assert rendered(f"<h2>{text}</h2>").text == text.replace(" ", "")


def test_a_link_behind_an_exclamation_mark_is_no_image():
    assert rendered('<p>!<a href="https://x">a</a></p>').elements == {"p", "a"}


@pytest.mark.parametrize(
    ("source", "content"),
    [
        ("<b><i>a</b>b</i> <a href=x><b>c</a>d</b>", "***a***b [**c**](x)**d**"),
        ("<a href=x><h2>a</h2><p>b</p></a>", "## [a](x)\n\nb"),
        ("<li>a<li>b<ul><li>c</ul>d<p hidden>e<p>f", "- a\n\n- b\n  - c\n\n  d\n\n  f"),
        (
            "<table><tr><td>a<table><tr><td>b</table>c<td>d</table>e",
            "| a b c | d |\n| --- | --- |\n\ne",
        ),
        ("<td>a<tr></ul></table>b</p><code>c<p>d", "a\n\nb\n\n`c`\n\nd"),
        (
            "x<!-->y<!-- <b> -->z</>u<?q?>v<a b='>'>w</a><script>'</p>'</script >t",
            "xyzuvwt",
        ),
    ],
)
def test_malformed_html_is_read_as_browsers_read_it(source, content):
    assert from_html(source) == content + "\n"


@pytest.mark.parametrize(
    "unit",
    [
        *("<b>", "<b><i></b>x", "<i>x<br>", "<p hidden>", "<", "<a", "<!--", '<a b="', "</", "<script>"),
        *("&", "&#1;", "*a ", "[", "[x]:<br>", "\\", "_a", "` ", "# ", "<td colspan=9999>x", "<p>x"),
        *("<code>`</code>x", "<table><tr><td>", "<img src=a alt=[>", "<a href=b><p>x"),
    ],
)  # fmt: skip
def test_a_repeated_text_takes_space_in_proportion(unit):
    content = from_html(unit * 3_000 + "x")
    assert content is None or len(content) < 8 * len(unit) * 3_000


@pytest.mark.spec("recording", "conversion failures pass through unchanged")
@pytest.mark.parametrize(
    ("_case", "source"),
    [
        ("10,000 lists", "<ul><li>" * 10_000 + "x"),
        ("10,000 quotes", "<blockquote>" * 10_000 + "x"),
        ("longer than the limit", "x" * (LONGEST + 1)),
        ("nothing to read", "<p> <b></b><script>x</script>"),
    ],
)
def test_what_cannot_be_converted_gives_nothing(_case, source):
    assert from_html(source) is None


def test_many_lines_in_many_quotes_are_too_much(monkeypatch):
    monkeypatch.setattr(markdown, "MOST_PREFIXES", 2_000)
    assert from_html("<blockquote>" * 10 + "x<br>" * 190)
    assert from_html("<blockquote>" * 10 + "x<br>" * 250) is None
