"""Fixtures of OAuth, for accounts too."""

from __future__ import annotations

from tests.recording.oauth.conftest import (  # noqa: F401 - fixtures
    account,
    app,
    confidential,
    described,
    person,
    site,
    visitor,
)
