"""An account that logs in by the page."""

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from tests.factories import UserFactory
from tests.recording.accounts.browsers import PASSWORD


@pytest.fixture
def ada(db) -> User:
    """An operator, whose failed logins of other tests are forgotten."""
    cache.clear()
    return UserFactory.create(
        superuser=True, username="ada", email="ada@example.org", password=PASSWORD
    )
