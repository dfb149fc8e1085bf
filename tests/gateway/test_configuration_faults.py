"""What can be wrong with the configuration file, and that its place is told."""

import json

import pytest

from gateway import configuration
from gateway.configuration import ConfigurationError
from tests.e2e.starting import Outcome, outcomes
from tests.running import environment

URL = "http://127.0.0.1:9/hook"


def static(**keys: str) -> str:
    """Return a file with one static subscription; keys are YAML."""
    values = {"tenant_id": "a", "url": f"'{URL}'", "secret": "s"} | keys
    pairs = ", ".join(f"{key}: {value}" for key, value in values.items())
    return f"webhooks:\n  subscriptions:\n    - {{{pairs}}}"


def model(**keys: str) -> str:
    """Return a file with one model; keys are YAML, on lines of their own from the third."""
    values = {"name": "m", "upstream": "echo"} | keys
    return "models:\n  -\n" + "\n".join(f"    {k}: {v}" for k, v in values.items())


def budget(**keys: str) -> str:
    values = {"name": "b", "counts": "tokens", "window": "day", "limit": "1"} | keys
    pairs = ", ".join(f"{key}: {value}" for key, value in values.items())
    return f"budgets:\n  - {{{pairs}}}"


FAULTS = [
    # The file.
    ("webhooks: [", ":1: is not YAML"),
    (b"\xff\xff", ": is not UTF-8"),
    ("[]", ":1: must be a dictionary"),
    ("{}\n---\n{}", ":2: is not YAML"),
    ("webhooks: !!python/name:os.system", ":1: is not YAML"),
    ("models: []\nmodels: []", ":2: is not YAML: models is given twice"),
    ("webhook: {}", ":1: webhook: unknown key"),
    ("webhooks:\n  retries: 1", ":2: webhooks.retries: unknown key"),
    ("webhooks: {enabled: !!bool foo}", ": is not YAML"),
    (model(extra_body="{a: &x [*x]}"), ":5: is not YAML: *x is not what JSON has"),
    (model(name='"m\\ud800"'), ":3: models[0].name: must be a valid string"),
    ("[" * 2000, ": is not YAML"),
    # webhooks
    ("webhooks:", ":1: webhooks: must be a dictionary"),
    ("webhooks: {enabled: 'yes'}", "webhooks.enabled: must be a valid boolean"),
    ("webhooks: {max_attempts: true}", "max_attempts: must be a valid integer"),
    ("webhooks: {base_backoff_s: .nan}", "base_backoff_s: must be a finite number"),
    ("webhooks: {publishable: [x]}", "publishable: 'x' is none of ingest.completed"),
    (
        "webhooks: {event_types: [{name: drift.detected, description: x}]}",
        "webhooks: event_types: 'drift.detected' is one of Signpost's own",
    ),
    (
        "webhooks:\n  subscriptions:\n    - {}",
        ":3: webhooks.subscriptions[0].url: Field",
    ),
    (static(tenant_id="a b"), ":3: webhooks.subscriptions[0].tenant_id: must"),
    (static(url="'ftp://x'"), "[0].url: url must start with"),
    (static(url="'http://127.0.0.1:8000/'"), "itself"),
    (static(event_types="[x]"), ":1: webhooks: subscriptions: 'x' is no event type"),
    (
        static(secret="'${ABSENT}'"),
        "secret: the environment variable ABSENT is not set",
    ),
    *(
        (static(secret=f"'{text}'"), "secret: is neither a text nor a whole ${NAME}")
        for text in ("${A", "${}", "x${A}", "${A}${A}", "$${A}")
    ),
    (static(secret="$ACME"), "[0].secret: must be written ${NAME}, with braces,"),
    (static(secret="x" * 257), "1 to 256"),
    (static(secret="whsec_"), "secret: must be more than whsec_"),
    (static(filter="{}"), ":3: webhooks.subscriptions[0].filter: unknown key"),
    (
        f"{static()}\n    - {{tenant_id: a, url: '{URL}', secret: t}}",
        ":2: webhooks.subscriptions: several have the tenant_id and url a and",
    ),
    # models
    ("models:\n  - {name: m}", ":2: models[0].upstream: Field required"),
    (model(upstream="openai"), "models[0]: needs base_url"),
    (model(upstream="openai", targets="[{}]"), "models[0]: needs base_url"),
    (model(model="x", targets="[{}]"), "models[0]: has targets beside base_url, model"),
    (model(targets="[{x: 0}]"), ":5: models[0].targets[0].x: unknown key"),
    (model(allow="{}"), "allow: must be everyone, or name"),
    (model(allow="{everyone: true}"), "allow: must be everyone, or name"),
    (model(allow="{principals: [ada]}"), "allow.principals[0]: must match"),
    *(
        (model(base_url=json.dumps(url)), ":5: models[0].base_url: must be an http or")
        for url in ("x:", "http://x:99999", "http://x/?a", "http://x/v 1", "http://x\t")
    ),
    *(
        (
            model(api_key=json.dumps(key)),
            ":5: models[0].api_key: must be printable ASCII",
        )
        for key in (" ", "a\nb", "a\u0001", "clé")
    ),
    (
        model() + "\n  - {name: m, upstream: echo}",
        ":1: models: several have the name m",
    ),
    (model(supports="[streaming, tool]"), "supports[1]: must be 'streaming'"),
    (model(extra_headers='{"a b": x}'), ":5: models[0].extra_headers.a b: must match"),
    (model(extra_headers='{a: "b\\nc"}'), "extra_headers.a: must be printable ASCII"),
    (model(extra_body="{a: !!set {b}}"), "extra_body.a: input was not a valid JSON"),
    (model(fallbacks="[m]"), ":1: models: fallbacks of 'm': 'm' is no other entry"),
    (model(server="azure"), "models[0]: has server, which only the upstream openai"),
    (model(api_version="'1&a=b'"), ":5: models[0].api_version: must match"),
    (model(proxy="socks5://x"), ":5: models[0].proxy: must be an http or https"),
    (model(proxy="https://x"), ":5: models[0].proxy: must be an http address"),
    # budgets
    (budget(limit="0"), ":2: budgets[0].limit: must be greater than 0"),
    (budget(limit="1.5"), "budgets[0]: the limit of 'b' is not a whole number"),
    (budget(name="key 7"), "budgets[0]: 'key 7' is the name of a key's own budget"),
]


@pytest.mark.parametrize(("text", "words"), FAULTS)
def test_a_fault_names_file_line_and_key(load, tmp_path, text, words):
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    message = str(caught.value)
    assert words in message
    assert message.startswith(f"{tmp_path / 'gateway.yaml'}:")


def test_all_faults_are_told_in_their_order(load):
    with pytest.raises(ConfigurationError) as caught:
        load("webhooks:\n  x: 1\n  enabled: 2\nmodels: 3")
    lines = [line.partition("yaml:")[2] for line in str(caught.value).splitlines()]
    places = [": ".join(line.split(": ")[:2]) for line in lines]
    assert places == ["2: webhooks.x", "3: webhooks.enabled", "4: models"]


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(ConfigurationError, match="No such file"):
        configuration.load(tmp_path / "absent.yaml")


@pytest.mark.slow
def test_a_bad_file_stops_the_start_with_one_clear_error(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(static(secret="'${ABSENT}'"))

    def check(**variables: str) -> Outcome:
        given = environment(GATEWAY_CONFIG=str(file), **variables)
        return outcomes(("check",), environment=given)[0]

    refused = check()
    assert refused.status == 1
    place = f"{file}:3: webhooks.subscriptions[0].secret"
    assert f"{place}: the environment variable ABSENT is not set" in refused.output
    assert "Traceback" not in refused.output
    assert check(ABSENT="now it is").status == 0
