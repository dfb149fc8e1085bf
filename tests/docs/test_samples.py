"""The samples that need no process of their own: run here, as they stand on their pages."""

from __future__ import annotations

import json
import shlex
import tomllib
from dataclasses import fields
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import include, path, resolve

from catalog import demo
from catalog.models import Book
from gateway import configuration
from gateway.chat.routes import ROUTES
from gateway.configuration.shapes import CacheSettings
from gateway.models import GatewayKey
from gateway.webhooks import PROFILE
from recording.accounts import personal_tokens
from recording.models import PersonalToken, Recording
from tests.catalog.factories import BookFactory
from tests.docs.samples import DOCS, commands, filled, sample
from tests.factories import UserFactory
from tests.gateway.client import Api
from webhooks_core import profiles
from webhooks_core.profiles import Notice, NoticeKind, WebhookProfile

pytestmark = pytest.mark.django_db
RECORDING = shlex.quote(str(DOCS / "samples" / "recording.json"))


def run(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


# ── Catalogue ───────────────────────────────────────────────────────────────────────


def test_the_page_of_books_is_answered(client):
    demo.load()
    query = {"query": sample("catalog.md", "graphql", "page")}
    answer = client.post("/graphql", query, "application/json").json()
    books = answer["data"]["books"]
    assert [book["name"] for book in books["nodes"]] == ["Emma", "Germinal"]
    assert (books["pageInfo"]["hasNextPage"], books["totalCount"]) == (True, 4)


def test_the_nested_pages_of_books_are_answered(client):
    demo.load()
    query = {"query": sample("catalog.md", "graphql", "nested-page")}
    answer = client.post("/graphql", query, "application/json").json()
    counts = [node["booksPage"] for node in answer["data"]["categories"]["nodes"]]
    assert len(counts[0]["nodes"]) == 3


def test_a_catalogue_goes_to_a_file_and_comes_back(tmp_path):
    BookFactory.create(name="Emma")
    code = sample("catalog.md", "sh", "files")
    file = str(tmp_path / "books.csv")
    outputs = [run(*words) for words in commands(code.replace("books.csv", file))]
    assert outputs == ["1 book written.\n", "1 book added.\n"]
    assert [book.name for book in Book.objects.all()] == ["Emma", "Emma"]


def test_a_receiver_of_the_catalogue_is_added_listed_and_removed(settings):
    settings.CATALOG_EVENTS = True
    add, show, remove = commands(sample("catalog.md", "sh", "receivers"))
    public_id, secret = run(*add).split()
    assert secret.startswith("whsec_")
    assert run(*show).splitlines()[1:] == [
        f"{public_id}\thttp://127.0.0.1:9000/hook\tbook.created"
    ]
    assert remove[-1] == "ep_…"
    assert run(*remove[:-1], public_id) == "Removed.\n"


def test_the_catalogue_in_another_project_is_at_its_address(settings):
    own: dict[str, Any] = {"path": path, "include": include}
    code = sample("catalog.md", "python", "own-project").replace("[..., ", "[")
    exec(code, own)  # noqa: S102
    assert own["INSTALLED_APPS"] == ["catalog"]
    settings.ROOT_URLCONF = tuple(own["urlpatterns"])
    assert resolve("/graphql").func.__module__.startswith("catalog")


# ── Gateway ─────────────────────────────────────────────────────────────────────────


def test_a_gateway_key_is_made_listed_and_revoked():
    make, with_budget, show, revoke = commands(sample("gateway.md", "sh", "keys"))
    key = run(*make).strip()
    row = GatewayKey.objects.get()
    assert (row.tenant, row.principal, row.name) == ("acme", "ada", "build server")
    assert [row["key"] for row in json.loads(run(*show))] == [f"{key[:11]}…"]
    assert revoke[-1] == "ID…"
    assert run(*revoke[:-1], str(row.pk)) == "revoked 1\n"
    run(*with_budget)
    budget = GatewayKey.objects.get(principal="bob").budget_entry
    assert budget is not None
    assert (budget.counts, budget.window, budget.limit) == ("cost", "month", 50)


def test_the_document_is_taken():
    body = json.loads(sample("gateway.md", "json", "document"))
    answer = Api(tenant="acme", principal="ada").call("POST", "/v1/ingest", body)
    assert answer.status_code == 201, answer.content


def test_the_cache_is_read_as_the_page_shows_it(tmp_path):
    file = tmp_path / "gateway.yaml"
    file.write_text(sample("chat.md", "yaml", "cache"))
    [model] = configuration.load(file, environ={"TWO_KEY": "two"}).models
    assert model.cache == CacheSettings(3600, max_entries=1000, max_bytes=262_144)


def test_the_models_are_read_as_the_page_shows_them(tmp_path):
    file = tmp_path / "gateway.yaml"
    file.write_text(sample("chat.md", "yaml", "models"))
    loaded = configuration.load(file, environ={"ONE_KEY": "one", "TWO_KEY": "two"})
    [model] = loaded.models
    assert model.name == "large"
    assert [target.model for target in model.targets] == ["big-70b", "big"]


def test_codex_is_led_to_an_address_of_responses():
    config = tomllib.loads(sample("chat.md", "toml", "codex"))
    provider = config["model_providers"][config["model_provider"]]
    base = urlsplit(provider["base_url"])
    assert f"{base.path}/{provider['wire_api']}" in ROUTES


def test_the_tolerant_models_are_read_as_the_page_shows_them(tmp_path):
    file = tmp_path / "gateway.yaml"
    file.write_text(sample("chat.md", "yaml", "tolerance"))
    keys = ("ANTHROPIC_API_KEY", "TWO_KEY", "THREE_KEY")
    environ = dict.fromkeys(keys, "key") | {"HTTPS_PROXY": "http://proxy.internal:1"}
    large, *_ = configuration.load(file, environ=environ).models
    assert (large.fallbacks, large.context_fallbacks) == (("small",), ("long",))
    assert (large.drop_params, large.proxy) == (True, "http://proxy.internal:1")


# ── Recording ───────────────────────────────────────────────────────────────────────


def client_of(user: User) -> Client:
    token = personal_tokens.create(user=user, days=1).text
    return Client(headers={"Authorization": f"Bearer {token}"})


def test_a_personal_token_is_made_listed_revoked_and_pruned():
    ada = UserFactory.create(username="ada")
    code = sample("recording.md", "sh", "tokens").replace("USER", "ada")
    make, show, revoke, revoke_all, prune = commands(code)
    assert run(*make).startswith("rec_pat_")
    assert "build server" in run(*show)
    assert revoke[-1] == "ID…"
    pk = str(PersonalToken.objects.get(user=ada).pk)
    assert run(*revoke[:-1], pk) == "revoked 1\n"
    run(*make)
    assert run(*revoke_all) == "revoked 1\n"
    assert prune[-1] == "N"
    assert run(*prune[:-1], "0") == "deleted 2\n"


def test_the_recording_is_imported():
    UserFactory.create(username="ada")
    values = {"FILE.json": RECORDING, "USER": "ada"}
    [line] = commands(filled(sample("recording.md", "sh", "import"), values))
    assert "no event" in run(*line)
    assert Recording.objects.get().account.get_username() == "ada"


def test_the_subscription_is_made_and_its_answer_has_what_the_page_says():
    body = json.loads(sample("recording.md", "json", "subscription"))
    assert body["url"].startswith("https://")
    body["url"] = "https://93.184.216.34/recording"  # needs no resolver
    client = client_of(UserFactory.create(username="ada"))
    answer = client.post("/v1/webhooks", body, "application/json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["events"] == ["summary.completed"]


def test_the_error_is_the_one_that_is_answered():
    client = client_of(UserFactory.create(username="ada"))
    answer = client.post("/v1/webhooks", {"url": 1}, "application/json")
    assert answer.json() == json.loads(sample("recording.md", "json", "error"))


# ── The engine ──────────────────────────────────────────────────────────────────────


def test_a_notice_is_handed_on_as_the_page_shows(monkeypatch):
    queued: list[tuple[str, ...]] = []
    monkeypatch.setattr("django_q.tasks.async_task", lambda *task: queued.append(task))
    monkeypatch.setattr(profiles, "PROFILES", dict(profiles.PROFILES))
    profile = profiles.get(PROFILE)
    options = {
        column.name: getattr(profile, column.name) for column in fields(WebhookProfile)
    }
    del options["on_notice"]
    namespace: dict[str, Any] = {"options": options}
    exec(sample("delivery-lifecycle.md", "python", "notices"), namespace)  # noqa: S102
    forward = profiles.get(PROFILE).on_notice
    assert forward is namespace["forward"]
    assert forward
    forward(
        Notice(
            kind=NoticeKind.DISABLED,
            profile=PROFILE,
            owner="acme",
            endpoint_id="whsub_1",
        )
    )
    assert queued == [("shop.mail.owner", "acme", "disabled", "whsub_1")]
