"""The configuration file: what it says, and the place of everything that is wrong with it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from gateway import configuration, static
from gateway.configuration import (
    Allow,
    Configuration,
    ConfigurationError,
    ModelEntry,
    StaticSubscription,
    Target,
    Timeouts,
    WebhookSettings,
)
from tests.config.test_environment import start
from tests.gateway.making import PATH, drain
from tests.receiver import receiver
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.secrets import MASK
from webhooks_core.signing import verify_timestamped

SAMPLE = Path(django_settings.BASE_DIR) / "gateway" / "sample.yaml"
URL = "http://127.0.0.1:9/hook"


@pytest.fixture
def load(tmp_path):
    """Load a text as a configuration file: `load(text, NAME="value")`."""

    def read(text: str | bytes, **environ: str) -> Configuration:
        file = tmp_path / "gateway.yaml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return configuration.load(file, environ=environ)

    return read


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
    found = configuration.load(SAMPLE, environ={})
    assert found == configuration.current()
    assert found.webhooks == WebhookSettings()
    assert [(it.name, it.upstream) for it in found.models] == [("echo", "echo")]


def test_the_examples_in_the_sample_are_sound_too(load):
    text = SAMPLE.read_text().replace("  subscriptions: []\n", "  subscriptions:\n")
    lines = [
        line.replace("# ", "", 1) if line.lstrip().startswith(("# -", "#   ")) else line
        for line in text.splitlines()
    ]
    found = load("\n".join(lines), ACME_WEBHOOK_SECRET="s" * 16, SMALL_API_KEY="key")
    assert len(found.webhooks.subscriptions) == 1
    assert found.webhooks.subscriptions[0].secret == "s" * 16
    assert [it.name for it in found.models] == ["echo", "small"]


def test_all_keys_of_webhooks_are_read(load):
    found = load(
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
      description: Ops
    - {{tenant_id: globex, url: {URL}, secret: plain}}
""",
        NAME="from the environment",
    )
    assert found.webhooks == WebhookSettings(
        enabled=False,
        max_attempts=5,
        base_backoff_s=1.0,
        max_backoff_s=2.5,
        timeout_s=3.0,
        subscriptions=(
            StaticSubscription(
                tenant_id="acme",
                url=URL,
                event_types=("ingest.completed",),
                secret="from the environment",
                description="Ops",
            ),
            StaticSubscription(
                tenant_id="globex", url=URL, event_types=(), secret="plain"
            ),
        ),
    )


def test_all_keys_of_a_model_are_read(load):
    [model] = load(
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
""",
        KEY="sk-1",
    ).models
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
            principals=frozenset({("globex", "ada")}),
        ),
        timeouts=Timeouts(1, 2, 3, 4),
    )
    assert model.allow.admits(tenant="acme", principal="anybody")
    assert model.allow.admits(tenant="globex", principal="ada")
    assert not model.allow.admits(tenant="globex", principal="gus")


def test_a_model_may_have_several_targets_and_defaults_for_the_rest(load):
    [model] = load(
        """
models:
  - name: large
    upstream: anthropic
    allow: everyone
    targets:
      - {base_url: "https://one.example", weight: 3}
      - {base_url: "https://two.example", model: other, api_key: k}
"""
    ).models
    assert model == ModelEntry(
        name="large",
        upstream="anthropic",
        targets=(
            Target("https://one.example", "large", "", 3),
            Target("https://two.example", "other", "k", 1),
        ),
    )
    assert model.supports is None
    assert model.allow.admits(tenant="any", principal="body")


def test_no_secret_is_shown(load):
    found = load(
        f"""
webhooks: {{subscriptions: [{{tenant_id: a, url: "{URL}", secret: hush-1}}]}}
models: [{{name: m, upstream: openai, base_url: "http://x", api_key: hush-2}}]
"""
    )
    assert "hush" not in repr(found)


STATIC = "webhooks:\n  subscriptions:\n    - "
MODEL = "models:\n  - "
FAULTS = [
    ("not YAML", "webhooks: [", "1: is not YAML"),
    ("a tab", "webhooks:\n\tenabled: true", "2: is not YAML"),
    ("not UTF-8", b"\xff\xff", "is not UTF-8"),
    ("a control character", "webhooks: \x07", "is not YAML"),
    ("a list", "[]", "1: must be a mapping"),
    ("a text", "text", "1: must be a mapping"),
    (
        "an unknown part",
        "webhook: {}",
        "1: webhook: unknown key; known are webhooks, models",
    ),
    ("a part twice", "models: []\nmodels: []", "2: models: given twice"),
    ("webhooks null", "webhooks:", "1: webhooks: must be a mapping"),
    ("an unknown key", "webhooks:\n  retries: 1", "2: webhooks.retries: unknown key"),
    (
        "enabled text",
        "webhooks:\n  enabled: 'yes'",
        "2: webhooks.enabled: must be true",
    ),
    (
        "attempts 0",
        "webhooks: {max_attempts: 0}",
        "1: webhooks.max_attempts: must be an",
    ),
    ("attempts 101", "webhooks: {max_attempts: 101}", "from 1 to 100"),
    ("attempts 1.5", "webhooks: {max_attempts: 1.5}", "webhooks.max_attempts: must be"),
    ("attempts 0x", "webhooks: {max_attempts: 0x_}", "webhooks.max_attempts: must be"),
    ("attempts true", "webhooks: {max_attempts: true}", "webhooks.max_attempts: must"),
    ("base -1", "webhooks: {base_backoff_s: -1}", "must be a number from 0 to 3600"),
    ("base nan", "webhooks: {base_backoff_s: .nan}", "must be a number"),
    ("base inf", "webhooks: {base_backoff_s: .inf}", "must be a number"),
    ("cap below base", "webhooks: {max_backoff_s: 0.1}", "max_backoff_s is below"),
    ("timeout 0", "webhooks: {timeout_s: 0}", "must be a number from 0.1 to 60"),
    ("timeout text", "webhooks: {timeout_s: soon}", "webhooks.timeout_s: must be a"),
    (
        "no list",
        "webhooks: {subscriptions: {}}",
        "webhooks.subscriptions: must be a list",
    ),
    (
        "an empty one",
        STATIC + "{}",
        "3: webhooks.subscriptions[0]: needs tenant_id, url, secret",
    ),
    (
        "no tenant",
        STATIC + f"{{tenant_id: a b, url: '{URL}', secret: s}}",
        "[0].tenant_id: must have",
    ),
    (
        "a number",
        STATIC + f"{{tenant_id: 7, url: '{URL}', secret: s}}",
        "[0].tenant_id: must be a string",
    ),
    (
        "a bad url",
        STATIC + "{tenant_id: a, url: 'ftp://x', secret: s}",
        "[0].url: url must start with",
    ),
    (
        "ourselves",
        STATIC + "{tenant_id: a, url: 'http://127.0.0.1:8000/', secret: s}",
        "itself",
    ),
    (
        "a bad type",
        STATIC + f"{{tenant_id: a, url: '{URL}', secret: s, event_types: [x]}}",
        "event_types[0]: unknown event type",
    ),
    (
        "the test type",
        STATIC
        + f"{{tenant_id: a, url: '{URL}', secret: s, event_types: [webhook.test]}}",
        "unknown event type",
    ),
    (
        "no variable",
        STATIC + f"{{tenant_id: a, url: '{URL}', secret: '${{ABSENT}}'}}",
        "[0].secret: the environment variable ABSENT is not set",
    ),
    (
        "half a reference",
        STATIC + f"{{tenant_id: a, url: '{URL}', secret: '${{ABSENT'}}",
        "neither a text nor a whole",
    ),
    (
        "a long secret",
        STATIC + f"{{tenant_id: a, url: '{URL}', secret: {'x' * 257}}}",
        "1 to 256",
    ),
    (
        "a foreign secret",
        STATIC + f"{{tenant_id: a, url: '{URL}', secret: ключ}}",
        "printable ASCII",
    ),
    (
        "an empty secret",
        STATIC + f"{{tenant_id: a, url: '{URL}', secret: ''}}",
        "secret: must have 1",
    ),
    (
        "twice",
        STATIC
        + f"{{tenant_id: a, url: '{URL}', secret: s}}\n    - {{tenant_id: a, url: '{URL}', secret: t}}",
        "4: webhooks.subscriptions[1]: this tenant_id and url are given twice",
    ),
    ("models null", "models:", "models: must be a list"),
    ("no upstream", MODEL + "{name: m}", "2: models[0]: needs upstream"),
    ("no name", MODEL + "{upstream: echo}", "models[0]: needs name"),
    (
        "an unknown upstream",
        MODEL + "{name: m, upstream: x}",
        "upstream: must be one of openai, anthropic, echo",
    ),
    ("no address", MODEL + "{name: m, upstream: openai}", "models[0]: needs base_url"),
    (
        "a bad address",
        MODEL + "{name: m, upstream: openai, base_url: 'x:'}",
        "base_url: must be an http",
    ),
    (
        "a bad port",
        MODEL + "{name: m, upstream: openai, base_url: 'http://x:99999'}",
        "base_url: must be an http",
    ),
    (
        "a name twice",
        MODEL + "{name: m, upstream: echo}\n  - {name: m, upstream: echo}",
        "3: models[1]: a model named m is given twice",
    ),
    (
        "both",
        MODEL + "{name: m, upstream: echo, model: x, targets: [{}]}",
        "has both targets and model",
    ),
    (
        "no targets",
        MODEL + "{name: m, upstream: echo, targets: []}",
        "needs at least one target",
    ),
    (
        "weight 0",
        MODEL + "{name: m, upstream: echo, targets: [{weight: 0}]}",
        "targets[0].weight: must be an integer",
    ),
    (
        "a target's key",
        MODEL + "{name: m, upstream: echo, targets: [{x: 0}]}",
        "targets[0].x: unknown key",
    ),
    (
        "allow nobody",
        MODEL + "{name: m, upstream: echo, allow: {}}",
        "allow: must be everyone, or name",
    ),
    (
        "allow text",
        MODEL + "{name: m, upstream: echo, allow: all}",
        "allow: must be a mapping",
    ),
    (
        "a principal",
        MODEL + "{name: m, upstream: echo, allow: {principals: [ada]}}",
        "principals[0]: must be tenant/principal",
    ),
    (
        "supports text",
        MODEL + "{name: m, upstream: echo, supports: tools}",
        "supports: must be a list",
    ),
    (
        "two words",
        MODEL + "{name: m, upstream: echo, supports: [a b]}",
        "supports[0]: must be one word",
    ),
    (
        "a timeout",
        MODEL + "{name: m, upstream: echo, timeouts: {idle_s: 0}}",
        "timeouts.idle_s: must be a number",
    ),
    (
        "an unknown timeout",
        MODEL + "{name: m, upstream: echo, timeouts: {idle: 1}}",
        "timeouts.idle: unknown key",
    ),
]


@pytest.mark.parametrize(("_case", "text", "words"), FAULTS)
def test_a_fault_names_file_line_and_key(load, tmp_path, _case, text, words):
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    told = str(caught.value)
    assert words in told
    assert told.startswith(f"{tmp_path / 'gateway.yaml'}:")


def test_all_faults_are_told_at_once_in_their_order(load):
    with pytest.raises(ConfigurationError) as caught:
        load("webhooks:\n  x: 1\n  enabled: 2\nmodels: 3")
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1] for line in lines] == ["2", "3", "4"]


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(ConfigurationError, match="No such file"):
        configuration.load(tmp_path / "absent.yaml", environ={})


def test_a_file_that_refers_to_itself_ends(load):
    with pytest.raises(ConfigurationError, match="must be a string"):
        load("models: &a\n  - name: *a\n    upstream: echo")


def test_the_command_tells_what_a_file_holds_or_what_is_wrong(tmp_path):
    out = StringIO()
    call_command("check_gateway_config", str(SAMPLE), stdout=out)
    assert "sound; 0 static subscriptions, 1 models" in out.getvalue()
    file = tmp_path / "bad.yaml"
    file.write_text("webhooks: 7")
    with pytest.raises(CommandError, match="webhooks: must be a mapping"):
        call_command("check_gateway_config", str(file))


def test_a_bad_file_stops_the_start_with_one_clear_error(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(
        "webhooks:\n  subscriptions:\n    - {tenant_id: a, url: http://localhost:9, secret: '${ABSENT}'}"
    )
    done = start(GATEWAY_CONFIG=str(file))
    assert done.returncode == 1
    assert (
        f"{file}:3: webhooks.subscriptions[0].secret: the environment variable ABSENT is not set"
        in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert start(GATEWAY_CONFIG=str(file), ABSENT="now it is").returncode == 0


# ── Static subscriptions ────────────────────────────────────────────────────────────


@pytest.fixture
def use(monkeypatch):
    """Restart with these static subscriptions."""

    def configure(*subscriptions: StaticSubscription) -> None:
        found = Configuration(WebhookSettings(subscriptions=subscriptions))
        monkeypatch.setattr(configuration, "current", lambda: found)

    return configure


def declared(url: str = URL, **fields) -> StaticSubscription:
    given = {"tenant_id": "acme", "url": url, "event_types": (), "secret": "s"}
    return StaticSubscription(**(given | fields))


@pytest.mark.spec("gateway", "Static subscriptions may also be configured")
@pytest.mark.django_db(transaction=True)
def test_a_static_subscription_receives_and_leaves_with_its_history(acme, use):
    with receiver(204) as it:
        use(declared(it.url, secret="shared secret"))
        acme.ingest("one")
        assert drain() == 1
        use()
        acme.ingest("two")
        assert drain() == 0
    [request] = it.requests
    verify_timestamped(
        "shared secret",
        signature=request.headers["X-Gateway-Signature"],
        body=request.body,
        now=request.at,
    )
    assert acme.get() == {"items": []}
    assert Delivery.objects.get().status == Delivery.Status.DELIVERED
    assert Endpoint.objects.get().deleted_at is not None


@pytest.mark.django_db
def test_a_static_subscription_shows_as_read_only(acme, globex, use):
    use(declared(description="declared"))
    [shown] = acme.get()["items"]
    assert shown["secret"] == MASK
    assert (shown["url"], shown["description"], shown["active"]) == (
        URL,
        "declared",
        True,
    )
    assert acme.get(f"/{shown['id']}") == shown
    assert globex.get() == {"items": []}
    for method, body in (
        ("PATCH", {"active": False}),
        ("PATCH", b"{"),
        ("DELETE", None),
    ):
        answer = acme.call(method, f"{PATH}/{shown['id']}", body)
        assert (answer.status_code, list(answer.json())) == (409, ["detail"])
    assert globex.call("DELETE", f"{PATH}/{shown['id']}").status_code == 404
    assert acme.test(shown).status_code == 202
    assert acme.get()["items"] == [shown]


@pytest.mark.django_db
def test_static_subscriptions_take_no_room_from_the_quota(acme, use):
    use(*(declared(f"{URL}/{n}") for n in range(3)))
    for _ in range(100):
        acme.create()
    assert len(acme.get()["items"]) == 103


@pytest.mark.django_db
def test_a_synchronisation_changes_what_changed_and_nothing_else():
    def synchronise(*subscriptions: StaticSubscription) -> static.Synchronised:
        return static.synchronise(
            Configuration(WebhookSettings(subscriptions=subscriptions))
        )

    first, second = declared(), declared(f"{URL}/2")
    assert synchronise(first, second) == static.Synchronised(created=2)
    assert synchronise(first, second) == static.Synchronised()
    ids = list(Endpoint.objects.values_list("public_id", flat=True))
    changed = declared(event_types=("drift.detected",), secret="other")
    assert synchronise(changed, second) == static.Synchronised(updated=1)
    assert synchronise(declared(event_types=("drift.detected",)), second).updated == 1
    assert synchronise(declared(), declared(f"{URL}/2", description="d")).updated == 2
    assert list(Endpoint.objects.values_list("public_id", flat=True)) == ids
    moved = declared(tenant_id="globex")
    assert synchronise(moved) == static.Synchronised(created=1, removed=2)
    assert [it.owner for it in Endpoint.objects.static("gateway")] == ["globex"]
    assert synchronise() == static.Synchronised(removed=1)


@pytest.mark.django_db
def test_the_secret_of_a_static_subscription_follows_the_file_at_once(settings):
    from cryptography.fernet import Fernet
    from django.utils import timezone

    def synchronise(secret: str) -> None:
        static.synchronise(
            Configuration(WebhookSettings(subscriptions=(declared(secret=secret),)))
        )

    for secret in ("one", "two"):
        synchronise(secret)
        assert Endpoint.objects.get().secrets(now=timezone.now()) == [secret]
    settings.WEBHOOK_SECRET_KEYS = [Fernet.generate_key().decode()]
    synchronise("two")
    assert Endpoint.objects.get().secrets(now=timezone.now()) == ["two"]


@pytest.mark.django_db
def test_the_command_synchronises(use):
    use(declared())
    out = StringIO()
    call_command("sync_gateway_config", stdout=out, verbosity=0)
    assert out.getvalue() == ""
    assert Endpoint.objects.static("gateway").exists()
    Endpoint.objects.all().delete()
    call_command("sync_gateway_config", stdout=out)
    call_command("sync_gateway_config", stdout=out)
    assert out.getvalue().splitlines() == [
        "static subscriptions: 1 created, 0 updated, 0 removed",
        "static subscriptions: 0 created, 0 updated, 0 removed",
    ]


@pytest.mark.django_db(transaction=True)
def test_a_process_synchronises_once(acme, use, django_assert_num_queries):
    use(declared())
    acme.get()
    with django_assert_num_queries(1):
        acme.get()
