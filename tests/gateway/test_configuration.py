"""The configuration file: what it says, and the place of everything that is wrong with it."""

from pathlib import Path

import pytest
from django.conf import settings as django_settings

from gateway import configuration
from gateway.configuration.shapes import (
    Allow,
    Configuration,
    ModelEntry,
    Target,
    Timeouts,
    WebhookSettings,
)
from tests.gateway.factories import URL, declared

SAMPLE = Path(django_settings.BASE_DIR) / "gateway" / "sample.yaml"


@pytest.mark.spec("gateway", "Configuration keys under webhooks, with their defaults")
@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "webhooks: {}", "null"])
def test_every_key_has_the_specifications_default(load, text):
    assert load(text) == Configuration()
    assert WebhookSettings() == WebhookSettings(
        enabled=True,
        max_attempts=3,
        base_backoff_s=0.5,
        max_backoff_s=30.0,
        timeout_s=10.0,
        subscriptions=(),
    )


def test_the_shipped_sample_is_what_a_local_instance_runs_with(settings):
    assert Path(settings.GATEWAY_CONFIG) == SAMPLE
    loaded = configuration.load(SAMPLE)
    assert loaded == configuration.current()
    assert loaded.webhooks == WebhookSettings(
        publishable=("drift.detected", "eval.regression")
    )
    assert [(model.name, model.upstream) for model in loaded.models] == [
        ("echo", "echo")
    ]


def test_the_examples_in_the_sample_are_sound_too(load):
    text = SAMPLE.read_text()
    for key in ("  subscriptions", "  event_types", "budgets"):
        text = text.replace(f"{key}: []\n", f"{key}:\n")
    lines = [
        line.replace("# ", "", 1) if line.lstrip().startswith(("# -", "#   ")) else line
        for line in text.splitlines()
    ]
    loaded = load("\n".join(lines), ACME_WEBHOOK_SECRET="s" * 16, SMALL_API_KEY="key")
    assert len(loaded.webhooks.subscriptions) == 1
    assert loaded.webhooks.subscriptions[0].secret == "s" * 16
    assert [kind.name for kind in loaded.webhooks.event_types] == ["order.created"]
    assert [model.name for model in loaded.models] == ["echo", "small"]
    assert [budget.name for budget in loaded.budgets] == ["acme-monthly"]


@pytest.mark.spec("gateway", "a static secret may come from an environment variable")
def test_all_keys_of_webhooks_are_read(load):
    loaded = load(
        f"""
webhooks:
  enabled: false
  max_attempts: 5
  base_backoff_s: 1
  max_backoff_s: 2.5
  timeout_s: 3
  subscriptions:
    - tenant_id: acme
      url: {URL}
      event_types: [ingest.completed, ingest.completed]
      secret: ${{NAME}}
    - {{tenant_id: globex, url: {URL}, secret: plain}}
""",
        NAME="from the environment",
    )
    assert "from the environment" not in repr(loaded)
    assert loaded.webhooks == WebhookSettings(
        enabled=False,
        max_attempts=5,
        base_backoff_s=1.0,
        max_backoff_s=2.5,
        timeout_s=3.0,
        subscriptions=(
            declared(event_types=("ingest.completed",), secret="from the environment"),
            declared(tenant_id="globex", secret="plain"),
        ),
    )


def test_all_keys_of_a_model_are_read(load):
    [model, _] = load(
        """
models:
  - name: large
    upstream: openai
    base_url: https://one.example/v1/
    model: real-name
    api_key: ${KEY}
    inference_type: embedding
    supports: [streaming, tools]
    stream_usage: false
    allow: {tenants: [acme], principals: [globex/ada]}
    timeouts: {connect_s: 1, first_byte_s: 2, idle_s: 3, total_s: 4}
    thinking: budget
    drop_params: [seed, store]
    extra_headers: {X-Title: Harbour, X-Key: "${KEY}"}
    extra_body: {provider: {order: [a, 1, 0.5, null, true]}}
    fallbacks: [other]
    speaks: [chat, responses]
    server: azure
    api_version: 2024-10-21-preview
    proxy: ${PROXY}
  - {name: other, upstream: echo}
""",
        KEY="sk-1\r\n",  # a file ends with a line break
        PROXY="http://ada:secret@proxy.example:3128",
    ).models
    assert "secret" not in repr(model)
    assert "sk-1" not in repr(model)
    assert model == ModelEntry(
        name="large",
        upstream="openai",
        targets=(Target("https://one.example/v1", "real-name", "sk-1"),),
        inference_type="embedding",
        supports=frozenset({"streaming", "tools"}),
        stream_usage=False,
        allow=Allow(
            everyone=False,
            tenants=frozenset({"acme"}),
            principals=frozenset({"globex/ada"}),
        ),
        timeouts=Timeouts(1, 2, 3, 4),
        thinking="budget",
        drop_params=("seed", "store"),
        extra_headers={"X-Title": "Harbour", "X-Key": "sk-1"},
        extra_body={"provider": {"order": ["a", 1, 0.5, None, True]}},
        fallbacks=("other",),
        speaks=frozenset({"chat", "responses"}),
        server="azure",
        api_version="2024-10-21-preview",
        proxy="http://ada:secret@proxy.example:3128",
    )


def test_a_model_may_have_several_targets_and_defaults_for_the_rest(load):
    one = "{base_url: 'https://one.example', weight: 3}"
    two = "{base_url: 'https://two.example', model: other, api_key: k}"
    entry = f"name: large, upstream: anthropic, targets: [{one}, {two}]"
    [model] = load(f"models: [{{{entry}, allow: everyone}}]").models
    assert model == ModelEntry(
        name="large",
        upstream="anthropic",
        targets=(
            Target("https://one.example", "large", "", 3),
            Target("https://two.example", "other", "k", 1),
        ),
    )
