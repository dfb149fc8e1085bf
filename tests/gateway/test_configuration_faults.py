"""What can be wrong with the configuration file, and that its place is told."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from gateway import configuration
from gateway.configuration import ConfigurationError
from tests.config.test_environment import start

SAMPLE = Path(django_settings.BASE_DIR) / "gateway" / "sample.yaml"
URL = "http://127.0.0.1:9/hook"


def static(**keys: str) -> str:
    """Return a file with one static subscription; keys are YAML."""
    values = {"tenant_id": "a", "url": f"'{URL}'", "secret": "s"} | keys
    pairs = ", ".join(f"{key}: {value}" for key, value in values.items())
    return f"webhooks:\n  subscriptions:\n    - {{{pairs}}}"


def declared(**keys: str) -> str:
    """Return a file with one declared event type; keys are YAML."""
    pairs = "".join(f", {key}: {value}" for key, value in keys.items())
    return f"webhooks:\n  event_types:\n    - {{name: a.b, description: x{pairs}}}"


def model(**keys: str) -> str:
    """Return a file with one model; keys are YAML, on lines of their own from the third."""
    values = {"name": "m", "upstream": "echo"} | keys
    return "models:\n  -\n" + "\n".join(f"    {k}: {v}" for k, v in values.items())


# Faults of a file's syntax, its mappings and its lists.
SHAPES = [
    ("webhooks: [", "1: is not YAML"),
    ("webhooks:\n\tenabled: true", "2: is not YAML"),
    (b"\xff\xff", "is not UTF-8"),
    ("webhooks: \x07", "is not YAML"),
    ("[]", "1: must be a mapping"),
    ("text", "1: must be a mapping"),
    ("{}\n---\n{}", "2: is not YAML"),
    ("? [a]\n: 1", "1: is not YAML"),
    ("webhooks: !!python/name:os.system", "1: is not YAML"),
    ("models: []\nmodels: []", "2: is not YAML: models is given twice"),
    ("webhook: {}", "1: webhook: unknown key; known are webhooks, models, budgets"),
    ("webhooks:", "1: webhooks: must be a mapping"),
    ("webhooks:\n  1: 1", "webhooks[1]: unknown key"),
    ("webhooks:\n  ~: 1", "webhooks.None: unknown key"),
    (
        "webhooks:\n  retries: 1",
        "2: webhooks.retries: unknown key; known are enabled, max_attempts",
    ),
    ("webhooks: {subscriptions: {}}", "webhooks.subscriptions: must be a list"),
    ("models:", "models: must be a list"),
    (model(targets="[{x: 0}]"), "targets[0].x: unknown key; known are base_url, model"),
    (model(timeouts="{idle: 1}"), "timeouts.idle: unknown key; known are connect_s"),
    (model(allow="{x: 1}"), "allow.x: unknown key; known are tenants, principals"),
    (model(supports="tools"), "5: models[0].supports: must be a list"),
    (model(supports="{tools: true}"), "supports: must be a list"),
    (model(supports=""), "supports: must be a list"),
]
# Faults of a value under `webhooks`.
VALUES = [
    ("enabled: 'yes'", "enabled: must be true or false"),
    ("enabled: !!bool foo", "1: is not YAML: a value does not fit its type"),
    ("enabled: !!bool [1]", "1: is not YAML"),
    ("max_attempts: 0", "max_attempts: must be greater than or equal to 1"),
    ("max_attempts: 101", "max_attempts: must be less than or equal to 100"),
    ("max_attempts: 1.5", "max_attempts: must be a valid integer"),
    ("max_attempts: true", "max_attempts: must be a valid integer"),
    ("max_attempts: 0x_", "1: is not YAML: a value does not fit its type"),
    (f"max_attempts: {'9' * 5000}", "1: is not YAML: a value does not fit its type"),
    ("max_attempts: !!int ''", "1: is not YAML: a value does not fit its type"),
    ("base_backoff_s: -1", "base_backoff_s: must be greater than or equal to 0"),
    ("base_backoff_s: .nan", "base_backoff_s: must be"),
    ("base_backoff_s: .inf", "base_backoff_s: must be less than or equal to 3600"),
    ("max_backoff_s: 0.1", "webhooks: max_backoff_s is below base_backoff_s"),
    ("timeout_s: 0", "timeout_s: must be greater than or equal to 0.1"),
    ("timeout_s: soon", "timeout_s: must be a valid number"),
    ("timeout_s: ''", "timeout_s: must be a valid number"),
    (f"timeout_s: {'9' * 400}", "timeout_s: must be a valid number"),
    ("timeout_s: !!float '_'", "1: is not YAML: a value does not fit its type"),
]
# Faults of a static subscription.
SUBSCRIPTIONS = [
    (
        "webhooks:\n  subscriptions:\n    - {}",
        "3: webhooks.subscriptions[0]: needs url",
    ),
    (static(tenant_id="a b"), "[0].tenant_id: must match pattern"),
    (static(tenant_id="7"), "[0].tenant_id: must be a valid string"),
    (static(url="'ftp://x'"), "[0].url: url must start with"),
    (static(url="'http://127.0.0.1:8000/'"), "itself"),
    (static(event_types="[x]"), "event_types[0]: must be one of ingest."),
    (static(event_types="[webhook.test]"), "event_types[0]: must be one of ingest."),
    (
        static(secret="'${ABSENT}'"),
        "[0].secret: the environment variable ABSENT is not set",
    ),
    *(
        (static(secret=f"'{text}'"), "secret: is neither a text nor a whole ${NAME}")
        for text in ("${A", "${}", "${ A }", "x${A}", "${A}x", "${A}${A}", "$${A}")
    ),
    *(
        (file, "[0]." + key + ": must be written ${NAME}, with braces,")
        for text in ("$ACME", "$_x9")
        for key, file in (
            ("secret", static(secret=text)),
            ("api_key", model(api_key=text)),
        )
    ),
    (static(secret="!!str {a: b}"), "3: is not YAML"),
    (static(secret="x" * 257), "1 to 256"),
    (static(secret="ключ"), "printable ASCII"),
    (static(secret="whsec_"), "secret: must be more than whsec_"),
    (static(secret="''"), "secret: must have at least 1 character"),
    (
        f"{static()}\n    - {{tenant_id: a, url: '{URL}', secret: t}}",
        "4: webhooks.subscriptions[1]: has the same tenant_id and url as an earlier one",
    ),
    *(
        (file, f"{key}: must hold only what JSON has")
        for value in ("2026-01-01", ".nan", "!!binary aGk=", "&x [*x]", '"\\ud800"')
        for key, file in (
            ("filter", static(filter=f"{{a: {value}}}")),
            ("sample", declared(sample=f"{{a: {value}}}")),
        )
    ),
]
# Faults of a model.
MODELS = [
    ("models:\n  - {name: m}", "2: models[0]: needs upstream"),
    ("models:\n  - {upstream: echo}", "models[0]: needs name"),
    (model(upstream="x"), "4: models[0].upstream: must be 'openai', 'anthropic' or"),
    (model(thinking="disabled"), "thinking: must be 'adaptive', 'unasked' or 'budget'"),
    (model(upstream="openai"), "models[0]: needs base_url"),
    (model(upstream="openai", targets="[{}]"), "needs base_url of each target"),
    *(
        (model(base_url=json.dumps(url)), "5: models[0].base_url: must be an http or")
        for url in (
            *("x:", "http://x:99999", "http://x/?a", "http://x/#a"),
            *("http://x/v1\n", " http://x/v1", "http://x/v 1", "http://x\t/v1"),
            "http://x/\u00a0",
        )
    ),
    *(
        (model(api_key=json.dumps(key)), "[0].api_key: must be printable ASCII")
        for key in (
            *(" ", "\n", "a\nb", "a\rb", "a\tb"),
            "a\u0001",
            "clé",
            "\u2028a\u200b",
        )
    ),
    (
        model() + "\n  - {name: m, upstream: echo}",
        "5: models[1]: has the same name as an earlier one",
    ),
    (model(model="x", targets="[{}]"), "models[0]: has both targets and model"),
    (model(targets="[]"), "models[0].targets: needs at least one target"),
    (model(targets="[{weight: 0}]"), "[0].targets[0].weight: must be greater"),
    (model(allow="{}"), "allow: must be everyone, or name"),
    (model(allow="all"), "allow: must be everyone, or name"),
    (model(allow="{principals: [ada]}"), "principals[0]: must match pattern"),
    (model(name='"m\\0"'), "models[0].name: must not hold a NUL"),
    (model(name='"m\\ud800"'), "models[0].name: must be a valid string"),
    (model(supports="[streaming, tool]"), "supports[1]: must be 'streaming', 'tools',"),
    *(
        (model(supports=f"[{value}]"), "5: models[0].supports[0]: must be 'streaming'")
        for value in ("Streaming", "a b", "''", "1", "null", "[tools]", "{tools: true}")
    ),
    *(
        (model(inference_type=value), "5: models[0].inference_type: must be 'chat' or")
        for value in ("chatt", "Chat", "''", "", "[chat]", "1")
    ),
    (model(timeouts="{idle_s: 0}"), "timeouts.idle_s: must be greater than or equal"),
    (model(timeouts="{total_s: null}"), "timeouts.total_s: must be a valid number"),
    (model(drop_params="seed"), "5: models[0].drop_params: must be a list"),
    (model(drop_params="[seed, 1]"), "drop_params[1]: must be a valid string"),
    (model(drop_params=""), "5: models[0].drop_params: must be a list"),
    (model(extra_headers="[a]"), "extra_headers: must be a"),
    (model(extra_headers='{"a b": x}'), "extra_headers: 'a b' cannot be the"),
    (model(extra_headers="{Host: x}"), "5: models[0].extra_headers: must not set Host"),
    (model(extra_headers="{Proxy-Authorization: x}"), "must not set Proxy-Authori"),
    (model(extra_headers='{a: "b\\nc"}'), "extra_headers.a: must be printable ASCII"),
    (model(extra_headers="{a: $B}"), "extra_headers.a: must be written ${NAME}"),
    (model(extra_headers="{a: 1}"), "extra_headers.a: must be a valid string"),
    (model(extra_body="[1]"), "extra_body: must be a"),
    (model(extra_body="{a: 2026-01-01}"), "extra_body: must hold only what JSON"),
    (model(extra_body="{a: &x [*x]}"), "extra_body: must hold only what JSON has"),
    (model(extra_body="{a: .nan}"), "extra_body: must hold only what JSON has"),
    (model(extra_body="{model: x, b: 1}"), "extra_body: must not set model"),
    (model(retries="-1"), "retries: must be greater than or equal to 0"),
    (model(retries="11"), "retries: must be less than or equal to 10"),
    (model(retries="true"), "retries: must be a valid integer"),
    (model(fallbacks="[n]"), "5: models[0].fallbacks[0]: must be the name of another"),
    (model(fallbacks="[m]"), "5: models[0].fallbacks[0]: must be the name of another"),
    (model(context_fallbacks="[n]"), "[0].context_fallbacks[0]: must be the name of"),
    (model(fallbacks="n"), "5: models[0].fallbacks: must be a list"),
    (
        model(upstream="openai", server="azur"),
        "5: models[0].server: must be 'openai', 'az",
    ),
    (model(server="azure"), "3: models[0]: has server, which only the upstream openai"),
    (model(responses="true"), "3: models[0]: has responses, which only the upstream"),
    (model(api_version="'1&a=b'"), "5: models[0].api_version: must match pattern"),
    (model(balance="fast"), "balance: must be 'weight' or 'latency'"),
    *(
        (model(proxy=json.dumps(url)), "5: models[0].proxy: must be the http or https")
        for url in ("proxy:3128", "socks5://x", "http://x/p", "http://x?a", "http://")
    ),
]
FAULTS = [
    *SHAPES,
    *((f"webhooks: {{{text}}}", words) for text, words in VALUES),
    *SUBSCRIPTIONS,
    *MODELS,
]


@pytest.mark.parametrize(("text", "words"), FAULTS)
def test_a_fault_names_file_line_and_key(load, tmp_path, text, words):
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    message = str(caught.value)
    assert words in message
    assert message.startswith(f"{tmp_path / 'gateway.yaml'}:")


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            "webhooks:\n  x: 1\n  enabled: 2\nmodels: 3",
            ["2: webhooks.x", "3: webhooks.enabled", "4: models"],
        ),
        (
            "models:\n  - name: m\n    weight: 1\n    stream_usage: 2",
            ["2: models[0]", "3: models[0].weight", "4: models[0].stream_usage"],
        ),
        (
            "models:\n  - &a {name: m, upstream: x}\n  - *a",
            ["2: models[0].upstream", "2: models[1].upstream"],
        ),
        # What keys must agree on is checked when each of them is right.
        ("webhooks: {max_attempts: 0, max_backoff_s: 0}", ["1: webhooks.max_attempts"]),
        (
            "models: &a\n  - name: *a\n    upstream: echo",
            ["2: models[0].name"],
        ),
    ],
)
def test_all_faults_are_told_in_their_order(load, text, places):
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    lines = [line.partition("yaml:")[2] for line in str(caught.value).splitlines()]
    assert [": ".join(line.split(": ")[:2]) for line in lines] == places


def test_the_published_schema_finds_what_has_a_shape(load):
    schema = json.loads(
        (SAMPLE.parents[1] / "docs/api/gateway.schema.json").read_text()
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    sound = {
        "webhooks": {"max_attempts": 5},
        "models": [
            {"name": "m", "upstream": "echo", "allow": allow}
            for allow in ("everyone", {"principals": ["globex/ada"]})
        ],
    }
    assert check.is_valid(sound)
    faults: tuple[dict[str, Any], ...] = (
        {"webhook": {}},
        {"webhooks": {"max_attempts": 0}},
        {"models": [{"name": "m"}]},
        {"models": [{"name": "m", "upstream": "echo", "allow": "all"}]},
        {"models": [{"name": "m", "upstream": "echo", "supports": ["x"]}]},
    )
    for wrong in faults:
        assert not check.is_valid(wrong), wrong


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(ConfigurationError, match="No such file"):
        configuration.load(tmp_path / "absent.yaml", environ={})


def test_the_command_tells_what_a_file_holds_or_what_is_wrong(tmp_path):
    out = StringIO()
    call_command("check_gateway_config", str(SAMPLE), stdout=out)
    counts = "0 static subscriptions, 1 model, 0 budgets"
    assert f"sound; {counts}" in out.getvalue()
    file = tmp_path / "bad.yaml"
    file.write_text("webhooks: 7")
    with pytest.raises(CommandError, match="webhooks: must be a mapping"):
        call_command("check_gateway_config", str(file))


@pytest.mark.slow
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
