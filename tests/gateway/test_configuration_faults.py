"""What can be wrong with the configuration file, and that its place is told."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from gateway import configuration
from gateway.configuration import ConfigurationError
from gateway.configuration.shapes import SUPPORTS
from tests.config.test_environment import start

SAMPLE = Path(django_settings.BASE_DIR) / "gateway" / "sample.yaml"
URL = "http://127.0.0.1:9/hook"
STATIC = "webhooks:\n  subscriptions:\n    - "
MODEL = "models:\n  - "
FAULTS = [
    ("not YAML", "webhooks: [", "1: is not YAML"),
    ("a tab", "webhooks:\n\tenabled: true", "2: is not YAML"),
    ("not UTF-8", b"\xff\xff", "is not UTF-8"),
    ("a control character", "webhooks: \x07", "is not YAML"),
    ("a list", "[]", "1: must be a mapping"),
    ("two documents", "{}\n---\n{}", "2: is not YAML"),
    ("a null that is a list", "!!null [a]", "1: must be a mapping"),
    ("a key that is a list", "? [a]\n: 1", "?: unknown key"),
    ("a merge key", "webhooks: {<<: {enabled: false}}", "webhooks.<<: unknown key"),
    ("an object of Python's", "webhooks: !!python/name:os.system", "must be a mapping"),
    *(
        (f"no {claim}", f"webhooks: {{{key}: !!{claim} {value}}}", f"{key}: {words}")
        for claim, key, words in (
            ("bool", "enabled", "must be true or false"),
            ("int", "max_attempts", "must be an integer"),
            ("float", "timeout_s", "must be a number"),
            ("int", "timeout_s", "must be a number"),
        )
        for value in ("''", "foo", "'-'", "'_'", "[1]", "{a: 1}")
    ),
    ("a float beyond all", f"webhooks: {{timeout_s: {'9' * 400}}}", "must be a number"),
    (
        "an integer beyond all",
        f"webhooks: {{max_attempts: {'9' * 5000}}}",
        "must be an integer",
    ),
    (
        "a text that is a mapping",
        STATIC + f"{{tenant_id: a, url: '{URL}', secret: !!str {{a: b}}}}",
        "secret: must be a string",
    ),
    *(
        (
            f"the reference {text}",
            STATIC + f"{{tenant_id: a, url: '{URL}', secret: '{text}'}}",
            "secret: is neither a text nor a whole ${NAME}",
        )
        for text in ("${A", "${}", "${ A }", "x${A}", "${A}x", "${A}${A}", "$${A}")
    ),
    *(
        (
            f"the variable {text} without braces",
            entry.replace("KEY", text),
            f"{key}: must be written ${{NAME}}, with braces,",
        )
        for text in ("$ACME", "$_x9")
        for key, entry in (
            ("[0].secret", STATIC + f"{{tenant_id: a, url: '{URL}', secret: KEY}}"),
            ("[0].api_key", MODEL + "{name: m, upstream: echo, api_key: KEY}"),
        )
    ),
    *(
        (
            f"a key that no header can hold: {key!r}",
            MODEL + f"{{name: m, upstream: echo, api_key: {json.dumps(key)}}}",
            "[0].api_key: must be printable ASCII",
        )
        for key in (
            " ",
            "\n",
            "a\nb",
            "a\rb",
            "a\tb",
            "a\u0001",
            "clé",
            "\u2028a\u200b",
        )
    ),
    *(
        (
            f"an address with a blank: {url!r}",
            MODEL + f"{{name: m, upstream: openai, base_url: {json.dumps(url)}}}",
            "[0].base_url: must be an http or https address",
        )
        for url in (
            "http://x/v1\n",
            " http://x/v1",
            "http://x/v 1",
            "http://x\t/v1",
            "http://x/\u00a0",
        )
    ),
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
        "a bare prefix as secret",
        STATIC + f"{{tenant_id: a, url: '{URL}', secret: whsec_}}",
        "secret: must be more than whsec_",
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
    (
        "an unknown way to think",
        MODEL + "{name: m, upstream: echo, thinking: disabled}",
        "thinking: must be one of adaptive, unasked, budget",
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
    *(
        (
            f"a name with {_case}",
            MODEL + f'{{name: "m{text}", upstream: echo}}',
            "models[0].name: must not hold",
        )
        for _case, text in (("a NUL", "\\0"), ("half a character", "\\ud800"))
    ),
    *(
        (
            f"supports {value}",
            MODEL + f"\n      name: m\n      upstream: echo\n      supports: {value}",
            f"5: models[0].supports{place}: {words}",
        )
        for value, place, words in (
            ("[streaming, tool]", "[1]", f"must be one of {', '.join(SUPPORTS)}"),
            ("[stream]", "[0]", "must be one of streaming, tools, vision, audio, "),
            ("[images]", "[0]", "must be one of"),
            ("[Streaming]", "[0]", "must be one of"),
            ("[a b]", "[0]", "must be one of"),
            ("['tools ']", "[0]", "must be one of"),
            ("['']", "[0]", "must have 1 to"),
            ("[tools, tools]", "[1]", "given twice"),
            ("[1]", "[0]", "must be a string"),
            ("[true]", "[0]", "must be a string"),
            ("[null]", "[0]", "must be a string"),
            ("[[tools]]", "[0]", "must be a string"),
            ("[{tools: true}]", "[0]", "must be a string"),
            ("{tools: true}", "", "must be a list"),
            ("", "", "must be a list"),
        )
    ),
    *(
        (
            f"inference_type {value}",
            MODEL
            + f"\n      name: m\n      inference_type: {value}\n      upstream: echo",
            f"4: models[0].inference_type: {words}",
        )
        for value, words in (
            ("chatt", "must be one of chat, embedding"),
            ("Chat", "must be one of chat, embedding"),
            ("embeddings", "must be one of chat, embedding"),
            ("''", "must have 1 to"),
            ("", "must be a string"),
            ("[chat]", "must be a string"),
            ("1", "must be a string"),
        )
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
    message = str(caught.value)
    assert words in message
    assert message.startswith(f"{tmp_path / 'gateway.yaml'}:")


def test_all_faults_are_told_at_once_in_their_order(load):
    with pytest.raises(ConfigurationError) as caught:
        load("webhooks:\n  x: 1\n  enabled: 2\nmodels: 3")
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1] for line in lines] == ["2", "3", "4"]


def test_an_entry_that_lacks_a_key_is_read_to_its_end(load):
    with pytest.raises(ConfigurationError) as caught:
        load(f"{MODEL}name: m\n    weight: 1\n    stream_usage: 2")
    lines = [line.partition("yaml:")[2] for line in str(caught.value).splitlines()]
    assert [line.partition(": unknown key")[0] for line in lines] == [
        "2: models[0]: needs upstream",
        "3: models[0].weight",
        "4: models[0].stream_usage: must be true or false",
    ]


def test_what_keys_must_agree_on_is_checked_when_each_of_them_is_right(load):
    with pytest.raises(ConfigurationError) as caught:
        load("webhooks: {max_attempts: 0, max_backoff_s: 0}")
    assert "below" not in str(caught.value)


def test_a_value_that_an_alias_repeats_is_read_at_both_places(load):
    with pytest.raises(ConfigurationError) as caught:
        load("models:\n  - &a {name: m, upstream: x}\n  - *a")
    assert str(caught.value).count("upstream: must be one of") == 2


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
