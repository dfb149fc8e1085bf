"""The events' admin and the catalogue of what may happen."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from tests.webhooks_core.admin.looking import SCRIPT, page, queries_of
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import profiles
from webhooks_core.publishing import publish

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain")]

LIST = "/admin/webhooks_core/event/"
CATALOGUE = f"{LIST}catalogue/"


def test_the_list_reads_no_bodies(admin_client):
    publish_event()
    assert not any('"body"' in sql for sql in queries_of(admin_client, LIST))


def test_an_event_is_found_by_its_id_and_type(admin_client):
    first, other = publish_event(), publish_event(event_type="thing.lost")
    for query in (f"q={first.public_id}", "type=thing.made"):
        text = page(admin_client, f"{LIST}?{query}")
        assert f"<code>{first.public_id}</code>" in text
        assert f"<code>{other.public_id}</code>" not in text
    assert "0 events" in page(admin_client, f"{LIST}?type=%00")


def test_an_event_and_its_deliveries_lead_to_one_another(admin_client):
    EndpointFactory.create()
    first, other = publish_event(), publish_event()
    address = f"{LIST}{first.pk}/change/"
    (link,) = re.findall(
        r'<a href="([^"]+)">all deliveries of this event</a>',
        page(admin_client, address),
    )
    delivery = first.delivery_set.get()
    text = page(admin_client, link)
    assert delivery.public_id in text
    assert other.delivery_set.get().public_id not in text
    there = f"/admin/webhooks_core/delivery/{delivery.pk}/change/"
    assert f'<a href="{address}">' in page(admin_client, there)


def test_the_body_is_shown_escaped(admin_client):
    data = {"x": SCRIPT}
    published = publish(profile="plain", owner="a", event_type="thing.made", data=data)
    text = page(admin_client, f"{LIST}{published.pk}/change/")
    assert SCRIPT not in text
    assert SCRIPT in unescape(text)


def test_the_catalogue_shows_every_type_of_every_product(admin_client):
    text = unescape(page(admin_client, CATALOGUE))
    for profile in profiles.registered():
        assert f">{profile.name}</h2>" in text
        for event_type in profile.event_types.values():
            assert f"<code>{event_type.name}</code>" in text
            assert event_type.description in text
    assert "tried again after 60 s, 300 s." in text
    assert '"audio_id": "aud_2481"' in text


def test_the_catalogue_queries_no_table_of_the_engine(admin_client):
    EndpointFactory.create()
    publish_event()
    assert not any(
        '"webhooks_core_' in sql for sql in queries_of(admin_client, CATALOGUE)
    )


def test_the_catalogue_shows_which_products_are_switched_off(admin_client, use_profile):
    assert "Switched off" not in page(admin_client, CATALOGUE)
    off = use_profile(enabled=False, retry=replace(use_profile().retry, delays=()))
    assert not off.enabled
    text = page(admin_client, CATALOGUE)
    assert "Switched off" in text
    assert "tried again after never" not in text
