"""Cursors hold their position through a change of the keys."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography.fernet import Fernet

from recording.mcp.events.cursors import Position
from recording.mcp.events.errors import InvalidParamsError

POSITION = Position(7, 42, datetime(2026, 11, 25, 12, tzinfo=UTC))


def test_a_cursor_is_read_back():
    assert Position.read(POSITION.cursor(), account=7) == POSITION
    with pytest.raises(InvalidParamsError):
        Position.read(POSITION.cursor(), account=8)


def test_a_cursor_outlives_a_rotation_of_the_keys(settings):
    cursor, new = POSITION.cursor(), Fernet.generate_key().decode()
    settings.WEBHOOK_SECRET_KEYS = [new, *settings.WEBHOOK_SECRET_KEYS]
    assert Position.read(cursor, account=7) == POSITION
    settings.WEBHOOK_SECRET_KEYS = [new]
    with pytest.raises(InvalidParamsError):
        Position.read(cursor, account=7)
