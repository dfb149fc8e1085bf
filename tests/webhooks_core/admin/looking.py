"""Short words for what a browser of the admin does and sees."""

from __future__ import annotations

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import UserFactory

SCRIPT = "<script>alert(1)</script>"
NOWHERE = "http://127.0.0.1:9/"


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
    page(client, address)  # what is read once per process is not this page's
    with CaptureQueriesContext(connection) as queries:
        page(client, address)
    return [query["sql"] for query in queries]
