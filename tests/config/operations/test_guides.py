"""The guides of an instance: each page opens, no link is dead, and nothing runs in a browser."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urldefrag, urljoin

import pytest
from django.conf import settings

from config.operations import guides


def text_of(client, address: str) -> str:
    response = client.get(address)
    assert (address, response.status_code) == (address, 200)
    return str(response.content.decode())


def main_of(html: str) -> str:
    return html.partition("<main")[2].partition("</main>")[0]


PAGES = sorted(path for path in guides._paths().items() if path[1].endswith(".md"))


def test_each_page_of_the_index_is_served_with_its_title(client):
    index = (settings.BASE_DIR / "docs/README.md").read_text()
    served = set(guides._addresses())
    for link in re.findall(r"\]\(([^)#]+\.md)\)", index):
        path = (settings.BASE_DIR / "docs" / link).resolve()
        assert path.relative_to(settings.BASE_DIR).as_posix() in served
    html = text_of(client, "/guides/chat")
    title = (settings.BASE_DIR / "docs/chat.md").read_text().partition("\n")[0][2:]
    assert f"<title>{title} " in html


@pytest.mark.parametrize(
    ("page", "picture"), [("start", "delivery"), ("portal", "webhooks")]
)
def test_a_picture_for_light_and_dark_is_one_image(client, page, picture):
    html = text_of(client, f"/guides/{page}")
    assert "&lt;" not in html.partition("<h2")[0].partition("<h1")[2]
    assert f'src="/guides/images/{picture}-light.png"' in html


def test_no_link_of_a_guide_is_dead(client, db):
    pages = {
        address: main_of(text_of(client, address))
        for address, path in PAGES
        if address.startswith("/guides/") and "/adr/" not in path
    }
    assert len(pages) > 30
    ids = {
        address: set(re.findall(r' id="([^"]+)"', html))
        for address, html in pages.items()
    }
    answers: dict[str, int] = {}
    for address, html in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', html):
            url, anchor = urldefrag(urljoin(address, unescape(target)))
            if ":" in url:
                continue
            if url not in answers:
                answers[url] = client.get(url, HTTP_ACCEPT="text/html").status_code
            assert (address, target, answers[url]) == (address, target, 200)
            if anchor and url in ids:
                assert (address, anchor) == (
                    address,
                    anchor if anchor in ids[url] else "",
                )


def test_no_guide_has_an_inline_style_or_lost_markup(client):
    for address, path in PAGES:
        html = guides.read(path).body
        assert (address, re.findall(r"<[^>]+ style=", html)) == (address, [])
        assert (address, "```" in html) == (address, False)


def test_a_sample_is_shown_as_text(client):
    response = client.get("/guides/samples/receivers/receiver.php")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert client.get("/guides/images/graphiql.png")["Content-Type"] == "image/png"


@pytest.mark.parametrize(
    "name", ["nothing", "../manage.py", "..%2fmanage.py", "%2e%2e/.env", "site/conf.py"]
)
def test_no_other_file_is_served(client, name):
    assert client.get(f"/guides/{name}").status_code == 404


def test_a_guide_needs_no_database_and_sets_no_cookie(client):
    client.cookies["sessionid"] = "x" * 32
    response = client.get("/guides/operations")
    assert response.status_code == 200
    assert not response.cookies
