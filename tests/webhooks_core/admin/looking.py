"""Short words for what a browser of the admin does and sees."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.serializers import serialize
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import UserFactory
from webhooks_core.models import (
    Delivery,
    Endpoint,
    EndpointSecret,
    Event,
)

SCRIPT = "<script>alert(1)</script>"
NOWHERE = "http://127.0.0.1:9/"
MODELS = (Delivery, Endpoint, Event)


def page(client, address, status=200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return str(answer.content.decode())


def looker(client, codenames=()) -> User:
    staff = UserFactory.create(staff=True, username="staff")
    staff.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(staff)
    return staff


def queries_of(client, address) -> list[str]:
    """Return the statements of a page."""
    page(client, address)  # what is read once per process is not this page's
    with CaptureQueriesContext(connection) as queries:
        page(client, address)
    return [query["sql"] for query in queries]


@contextmanager
def nothing_changes() -> Iterator[None]:
    """Expect that what is done neither changes a row of the engine nor is logged."""

    def stored() -> str:
        tables = (each.objects.all() for each in (*MODELS, EndpointSecret))
        return str(serialize("json", chain.from_iterable(tables)))

    before = stored()
    yield
    assert stored() == before
    assert not LogEntry.objects.exists()
