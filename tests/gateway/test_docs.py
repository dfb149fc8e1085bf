"""docs/gateway.md says what the code does."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from django.conf import settings
from django.core.management import get_commands

from config import settings as settings_module
from gateway import errors, ingest, keys, serializers, splitting
from gateway.chat.upstreams.registry import KINDS
from gateway.configuration import shapes
from gateway.webhooks import EVENT_TYPES
from tests.gateway.test_openapi import OPERATIONS
from webhooks_core import profiles
from webhooks_core.web.parsers import MAX_BODY_BYTES

PAGE = (settings.BASE_DIR / "docs" / "gateway.md").read_text()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_endpoint_is_in_the_table(method, path):
    assert f"| {method} | `{path}` |" in PAGE


def test_the_table_of_errors_is_the_codes():
    documented = {
        int(status) for status in re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE)
    }
    assert documented == {*errors.ERRORS}


def test_every_field_event_type_and_key_is_named():
    names = {
        *serializers.SubscriptionSerializer().fields,
        *serializers.DeliverySerializer().fields,
        *EVENT_TYPES,
        *(
            field
            for item in EVENT_TYPES.values()
            for field in item.schema["properties"]
        ),
        *(
            field.name
            for shape in (
                *(shapes.WebhookSettings, shapes.StaticSubscription),
                *(shapes.DeclaredModel, shapes.Target, shapes.Timeouts),
            )
            for field in fields(shape)
        ),
        *KINDS,
        *ingest.CONTENT_TYPES,
    }
    assert not {name for name in names if f"`{name}`" not in PAGE}


def test_every_command_and_variable_exists():
    named = set(re.findall(r"manage\.py (\w+)", PAGE))
    known = get_commands()
    assert named <= known.keys()
    assert {name for name, app in known.items() if app == "gateway"} <= named
    variables = set(re.findall(r"`((?:GATEWAY|WEBHOOK)_\w+)`", PAGE))
    assert variables
    assert not {name for name in variables if not hasattr(settings_module, name)}


def test_the_numbers_are_the_codes():
    profile = profiles.get("gateway")
    for phrase in (
        f"at most {profile.quota} subscriptions",
        f"up to {profile.retry.max_attempts} attempts of {profile.timeout_s:g} seconds",
        "0.5 s and 1 s apart",
        f"within {keys.CACHE_S:g} seconds",
        f"{settings.GATEWAY_INGEST_MAX_BYTES:,} bytes of UTF-8",
        f"at most {splitting.MAX_CHARACTERS:,} characters",
        f"{ingest.MAX_METADATA_BYTES:,} bytes and {serializers.MAX_METADATA_DEPTH} levels",
        f"over {MAX_BODY_BYTES // 1024} KiB",
    ):
        assert phrase in PAGE
