import re

from playwright.sync_api import expect

from tests.catalog.factories import AuthorFactory, BookFactory
from tests.running import until


def test_graphiql_runs_a_query_and_shows_the_schema_under_the_strict_csp(
    live_server, page, complaints
):
    author = AuthorFactory.create(first_name="Jane", last_name="Austen")
    BookFactory.create(name="Emma", author=author)
    answer = page.goto(f"{live_server.url}/graphql")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy

    expect(page.locator(".result-window")).to_contain_text("Emma")
    BookFactory.create(name="Persuasion", author=author)
    page.get_by_role("button", name="Execute query").click()
    expect(page.locator(".result-window")).to_contain_text("Persuasion")
    page.get_by_role("button", name="Show Documentation Explorer").click()
    page.get_by_role("link", name="Query").first.click()
    page.get_by_text("searchBooks").first.wait_for()
    assert page.context.cookies() == []
    assert complaints == []


def test_the_first_visit_shows_data_and_later_ones_what_was_there(
    live_server, page, complaints
):
    BookFactory.create(name="Emma")
    page.goto(f"{live_server.url}/graphql")
    expect(page.locator(".result-window")).to_contain_text("Emma")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    page.reload()
    page.get_by_text("firstName").first.wait_for()
    page.wait_for_load_state("networkidle")
    assert not [text for text in asked if "getAllBooks" in text]
    assert complaints == []


def test_a_header_waits_for_the_token_which_is_not_kept(live_server, page):
    page.goto(f"{live_server.url}/graphql")
    page.get_by_role("button", name="Headers").click()
    editor = page.get_by_role("region", name="Headers")
    expect(editor).to_contain_text('"Authorization": "Bearer "')
    editor.get_by_role("textbox").first.press("Control+Home")
    page.keyboard.insert_text("spt_secret")
    page.wait_for_timeout(600)  # GraphiQL stores what was typed after half a second
    assert "spt_secret" not in page.evaluate("JSON.stringify(localStorage)")


def test_the_system_decides_between_light_and_dark(live_server, page):
    page.goto(f"{live_server.url}/graphql")
    container = page.locator(".graphiql-container")
    page.get_by_role("button", name="Execute query").wait_for()

    def is_dark() -> bool:
        color = container.evaluate("all => getComputedStyle(all).backgroundColor")
        return sum(map(float, re.findall(r"[\d.]+", color)[:3])) < 3 * 128

    page.emulate_media(color_scheme="dark")
    until(is_dark, "a dark page")
    page.emulate_media(color_scheme="light")
    until(lambda: not is_dark(), "a light page")


def test_a_narrow_screen_shows_the_whole_example_and_below_it_the_answer(
    live_server, page
):
    BookFactory.create(name="Emma")
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{live_server.url}/graphql")
    expect(page.locator(".result-window")).to_contain_text("Emma")
    query = page.locator(".graphiql-editors").bounding_box()
    answer = page.locator(".graphiql-response").bounding_box()
    assert query["y"] + query["height"] <= answer["y"] + 1
    assert min(query["width"], answer["width"]) > 350
    buttons = page.locator(".graphiql-toolbar button")
    buttons.first.wait_for()
    tops = [button.bounding_box() for button in buttons.all()]
    assert len(tops) == 4
    editor = page.locator(".graphiql-query-editor .CodeMirror")
    box = editor.bounding_box()
    assert all(area["y"] + area["height"] <= box["y"] for area in tops)
    last = page.get_by_text("lastName").last.bounding_box()
    assert last["x"] + last["width"] < box["x"] + box["width"]
    lines = page.locator(".graphiql-query-editor .CodeMirror-line")
    end = lines.last.bounding_box()
    assert end["y"] + end["height"] <= box["y"] + box["height"]
    # The variables are a tap away.
    page.get_by_role("button", name="Variables").click()
    page.get_by_role("region", name="Variables").wait_for()
