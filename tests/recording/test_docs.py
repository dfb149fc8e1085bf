"""docs/recording.md says what the code does."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.core.management import get_commands

from recording.errors import ERRORS
from recording.library import event_data
from recording.serializers import (
    DeliverySerializer,
    SubscriptionCreatedSerializer,
    SubscriptionSerializer,
)
from recording.webhooks import EVENT_TYPES, SUMMARY_COMPLETED_SCHEMA
from tests.recording.test_openapi import OPERATIONS
from webhooks_core import profiles
from webhooks_core.web.parsers import MAX_BODY_BYTES

PAGE = (settings.BASE_DIR / "docs" / "recording.md").read_text()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_endpoint_is_in_the_table(method, path):
    assert f"| {method} | `{path}` |" in PAGE


def test_the_table_of_errors_is_the_code_s():
    documented = {
        (int(status), code)
        for status, code in re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.MULTILINE)
    }
    assert documented == {(status, kind.code) for status, kind in ERRORS.items()}


def test_every_field_and_event_type_is_named():
    fields = {
        *SubscriptionSerializer().fields,
        *SubscriptionCreatedSerializer().fields,
        *DeliverySerializer().fields,
        *SUMMARY_COMPLETED_SCHEMA["properties"],
        *EVENT_TYPES,
    }
    assert not {name for name in fields if f"`{name}`" not in PAGE}


def test_every_command_exists():
    named = set(re.findall(r"manage\.py (\w+)", PAGE))
    assert named <= get_commands().keys()
    assert "import_recording" in named


def test_the_numbers_are_the_code_s():
    profile = profiles.get("recording")
    assert f"at most {profile.quota} subscriptions" in PAGE
    assert f"After {profile.disable_after} failed attempts in a row" in PAGE
    assert f"{event_data.TARGET:,} bytes" in PAGE
    assert f"over {MAX_BODY_BYTES // 1024} KiB" in PAGE
