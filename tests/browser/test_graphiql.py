from playwright.sync_api import expect

from tests.catalog.factories import AuthorFactory, BookFactory


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
