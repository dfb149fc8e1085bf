"""/v1/portal: links are made and revoked by callers of their tenant alone."""

from datetime import timedelta

import pytest
from django.utils import timezone

from gateway import keys, retention
from gateway.models import PortalLink
from gateway.portal import links
from tests.clock import travel
from tests.gateway.client import Api
from tests.gateway.portal.conftest import (
    EVERYTHING,
    browser,
    new_link,
    path_of,
    press,
    visit,
)

pytestmark = pytest.mark.django_db
PATH = "/v1/portal"


def make(api, status=201, **fields):
    body = {"capabilities": EVERYTHING} | fields
    response = api.call("POST", PATH, body)
    assert response.status_code == status, response.content
    return response.json()


def states(tenant="acme"):
    now = timezone.now()
    return [link.state(now) for link in links.of_tenant(tenant)]


def test_a_link_is_shown_once_and_stored_as_a_hash(acme):
    made = make(acme, expires_in=60)
    assert list(made) == ["url", "expires_at", "id"]
    assert made["url"].startswith("http://127.0.0.1:8000/portal/open/gw_portal_")
    link = PortalLink.objects.get()
    token = made["url"].rpartition("/")[2]
    assert link.expires_at - link.created_at == timedelta(seconds=60)
    assert (link.public_id, link.capabilities) == (made["id"], EVERYTHING)
    assert link.actor == "ada"  # the caller, for nobody else was named
    assert token not in str(list(PortalLink.objects.values_list()))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"capabilities": None}, "capabilities must be an array"),
        ({"expires_in": True}, "expires_in must be an integer"),
        ({"expires_in": 59}, "expires_in must be an integer from 60 to 604800."),
        ({"actor": ""}, "actor must"),
        ({"actor": " "}, "actor must have 1 to 128 printable characters"),
        ({"actor": "a\nb"}, "actor must have 1 to 128 printable characters"),
        ({"actor": "x" * 129}, "actor must have 1 to 128 printable characters"),
    ],
)
def test_a_link_that_cannot_be_is_refused_by_its_field(acme, fields, message):
    assert make(acme, 400, **fields)["detail"].startswith(message)
    assert not PortalLink.objects.exists()


def test_a_tenant_revokes_its_own_links_alone(acme, globex):
    make(acme)
    other = make(globex)["id"]
    for link_id in (other, "prt_" + "0" * 26, "prt_x", "%00", "x" * 3000):
        response = acme.call("DELETE", f"{PATH}/{link_id}")
        assert response.status_code == 404
        assert response.json() == {"detail": "There is no such portal link."}
    assert acme.call("DELETE", PATH).status_code == 204
    assert (states(), states("globex")) == (["revoked"], ["unused"])
    for _ in range(2):
        assert globex.call("DELETE", f"{PATH}/{other}").status_code == 204
    assert states("globex") == ["revoked"]


def made_by(key) -> links.Created:
    token = make(Api(key=key.text))["url"].rpartition("/")[2]
    link = links.by_token(token)
    assert link
    return links.Created(link, token)


def test_a_revoked_key_ends_what_it_made(db):
    leaked = keys.create(tenant="acme", principal="ada")
    other = keys.create(tenant="acme", principal="ada", days=1)
    opened, unused, kept = map(made_by, (leaked, leaked, other))
    visitor = visit(opened)
    visitor.get()
    keys.revoke([leaked.key.pk])
    visitor.get(status=403)
    for ended in (opened, unused):
        assert browser().get(path_of(ended)).status_code == 410
    # The page was shown before the key was revoked.
    unused.link.refresh_from_db()
    assert links.open_once(unused.link) is None
    assert states() == ["unused", "revoked", "revoked"]
    with travel(timezone.now() + timedelta(days=2)):
        PortalLink.objects.update(expires_at=timezone.now() + timedelta(hours=1))
        press(browser(), path_of(kept))  # its key has expired
    kept.link.refresh_from_db()
    assert kept.link.opened_at


def test_a_link_is_opened_once_however_many_press_at_once(db):
    made = new_link()
    twins = [PortalLink.objects.get(pk=made.link.pk) for _ in range(3)]
    sessions = [links.open_once(twin) for twin in twins]
    assert [session is not None for session in sessions] == [True, False, False]
    assert str(sessions[0]) not in str(list(PortalLink.objects.values_list()))
    assert states() == ["open"]


def test_states_follow_the_time(db):
    with travel("2030-01-01T00:00:00Z", tick=False) as clock:
        unused, opened = new_link(), new_link(expires_in=60)
        links.open_once(opened.link)
        clock.shift(timedelta(seconds=3600))
        assert states() == ["open", "expired"]
        clock.shift(links.SESSION_FOR)
        assert states() == ["expired", "expired"]
        # What has ended is not revoked: its page says why it does not open.
        assert links.revoke(links.of_tenant("acme"), timezone.now()) == 0
        assert links.open_once(unused.link) is None
        young = new_link()
        clock.shift(timedelta(days=links.KEPT_DAYS, seconds=-1))
        assert retention.remove_old() == 2
    assert PortalLink.objects.get() == young.link


def test_no_log_has_the_token(client, capfd, settings):
    made = new_link()
    path, token = path_of(made), made.token
    client.get(path)
    client.get(path, headers={"Host": "evil.example"})
    settings.SECURE_SSL_REDIRECT = True
    client.get(path)
    client.get(f"{path}x/y")
    written = capfd.readouterr().err
    assert token not in written
