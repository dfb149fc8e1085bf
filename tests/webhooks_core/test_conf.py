"""A project that sets only the keys gets working defaults; a changed setting takes effect at once."""

import re

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from tests.docs.samples import DOCS
from webhooks_core.conf import WebhookSettings, webhook_settings

PAGE = "your-own-project.md"
NAMES = [name for name in vars(WebhookSettings) if name.isupper()]


def test_a_project_that_sets_nothing_gets_the_defaults(settings):
    for name in NAMES:
        if hasattr(settings, f"WEBHOOK_{name}"):
            delattr(settings, f"WEBHOOK_{name}")
    defaults = {name: getattr(webhook_settings, name) for name in NAMES[1:]}
    assert defaults == {
        "ALLOWED_TARGETS": (),
        "PROXY_URL": "",
        "DISPATCHERS": 1 if connection.vendor == "sqlite" else 4,
        "RETENTION_DAYS": 30,
        "USER_AGENT": "Signpost",
    }
    with pytest.raises(ImproperlyConfigured, match="WEBHOOK_SECRET_KEYS"):
        _ = webhook_settings.SECRET_KEYS


def test_the_page_lists_every_setting():
    rows = re.findall(r"^\| `WEBHOOK_(\w+)`", (DOCS / PAGE).read_text(), re.MULTILINE)
    assert rows == NAMES
