import re

from django.test import Client

from tests.database import no_database
from tests.factories import UserFactory

ELSEWHERE = {"REMOTE_ADDR": "203.0.113.9"}
STATE = "What runs"


def page(client: Client, **headers) -> str:
    answer = client.get("/", **headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_no_link_is_dead(client, db):
    addresses = re.findall(r'href="(/(?!static)[^"]*)"', page(client))
    assert {"/admin/", "/docs", "/graphql", "/accounts/webhooks"} <= set(addresses)
    assert {"/openapi.json", "/healthz", "/readyz", "/metrics"} <= set(addresses)
    codes = {
        path: client.get(path, HTTP_ACCEPT="text/html").status_code
        for path in addresses
    }
    assert set(codes.values()) <= {200, 302}, codes


def test_other_clients_see_links_and_no_state(client, db):
    assert STATE not in page(client, **ELSEWHERE)
    client.force_login(UserFactory.create(username="ada"))
    assert STATE not in page(client, **ELSEWHERE)


def test_who_is_logged_out_finds_the_login_where_the_session_is_read(client, db):
    link = '<a class="login" href="/accounts/login/">Log in</a>'
    assert link in page(client)
    for path in ("/docs", "/graphql", "/accounts/login/"):
        assert link not in client.get(path, HTTP_ACCEPT="text/html").content.decode()
    client.force_login(UserFactory.create(username="ada"))
    assert link not in page(client)


def test_staff_sees_the_state_from_anywhere(client, db):
    client.force_login(UserFactory.create(superuser=True, username="root"))
    html = page(client, **ELSEWHERE)
    assert STATE in html
    assert "No worker has reported since" in html


def test_without_a_database_this_machine_sees_what_is_wrong(client, db):
    with no_database():
        assert "DATABASE_URL" in page(client)
