"""Accounts, tokens and a client that speaks JSON."""

import orjson
import pytest
from django.contrib.auth.models import User
from django.test import Client

from recording.accounts import personal_tokens
from recording.library import importing
from tests.api import Api as BaseApi
from tests.documented import DocumentedClient
from tests.factories import UserFactory
from tests.recording.accounts.browsers import BACKEND, PASSWORD
from tests.recording.oauth.flows import App
from webhooks_core.publishing import publish

# A literal address: it needs no resolver, and nothing is ever sent to it in these tests.
URL = "https://93.184.216.34/hook"
OTHER_URL = "https://93.184.216.34/other"


class Api(BaseApi):
    """A client with one account's personal token; its short verbs take paths below /v1/."""

    def __init__(self, user: User) -> None:
        super().__init__()
        self.user = user
        self.owner = str(user.pk)
        self.token = personal_tokens.create(user=user, days=30).text

    def call(self, method, path, body=None, *, headers=None, **options):
        headers = {"Authorization": f"Bearer {self.token}"} | (headers or {})
        return super().call(method, path, body, headers=headers, **options)

    def send(self, method, path, body=None, **options):
        return self.call(method, f"/v1/{path}", body, **options)

    def get(self, path, **options):
        return self.send("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.send("POST", path, body, **options)

    def patch(self, path, body=None, **options):
        return self.send("PATCH", path, body, **options)

    def delete(self, path, **options):
        return self.send("DELETE", path, **options)

    def create(self, url=URL, events=("summary.completed",)):
        response = self.post("webhooks", {"url": url, "events": list(events)})
        assert response.status_code == 201, response.content
        return response.json()

    def publish(self, count=1):
        """Publish summaries of so many recordings; return the events."""
        return [
            publish(
                profile="recording",
                owner=self.owner,
                event_type="summary.completed",
                data={"audio_id": f"aud_{number}"},
            )
            for number in range(count)
        ]


def imported(account, audio_id="aud_1", **content):
    """Import a recording; return the result."""
    raw = orjson.dumps({"audio_id": audio_id, **content})
    return importing.import_recording(account=account, raw=raw)


@pytest.fixture
def user(db) -> User:
    return UserFactory.create(
        username="ada", email="ada@example.org", password=PASSWORD
    )


@pytest.fixture
def api(user) -> Api:
    return Api(user)


@pytest.fixture
def stranger(db) -> Api:
    return Api(UserFactory.create(username="mallory"))


@pytest.fixture
def visitor(user) -> Client:
    """The browser of the user, who is logged in."""
    client = DocumentedClient()
    client.force_login(user, BACKEND)
    return client


@pytest.fixture
def app(visitor) -> App:
    """A public client that has registered itself."""
    return App.registered(visitor)
