"""manage.py import_litellm_config: LiteLLM's config.yaml as a gateway configuration."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from gateway import configuration
from gateway.configuration.litellm.providers import PROVIDERS, thinking_of
from gateway.configuration.shapes import Configuration
from tests.docs.samples import sample

ANYTHING = "http://variable.example"


class Everything(dict[str, str]):
    """An environment that has every variable."""

    def __missing__(self, _: str) -> str:
        return ANYTHING

    def get(self, name: str, _: Any = None) -> str:
        return self[name]


@pytest.fixture
def convert(tmp_path):
    """Import a text; return the configuration as it is loaded, and the notes."""

    def run(text: str | bytes) -> tuple[Configuration, str]:
        source, result = tmp_path / "config.yaml", tmp_path / "gateway.yaml"
        source.write_bytes(text.encode() if isinstance(text, str) else text)
        result.unlink(missing_ok=True)
        notes = StringIO()
        call_command("import_litellm_config", source, output=result, stderr=notes)
        return configuration.load(result, environ=Everything()), notes.getvalue()

    return run


def deployment(model: str, name: str = "large", **params: Any) -> dict[str, Any]:
    return {"model_name": name, "litellm_params": {"model": model, **params}}


def config(*models: Any, **sections: Any) -> str:
    return yaml.safe_dump({"model_list": [*models], **sections})


def test_the_example_of_the_guide_becomes_what_the_guide_shows(convert, load):
    page = "guides/from-litellm.md"
    imported, notes = convert(sample(page, "yaml", "litellm-config"))
    assert imported == load(
        sample(page, "yaml", "move-litellm"),
        ONE_KEY=ANYTHING,
        TWO_KEY=ANYTHING,
        ANTHROPIC_API_KEY=ANYTHING,
    )
    assert notes == "The environment needs ONE_KEY, TWO_KEY, ANTHROPIC_API_KEY.\n"


# ── Models ──────────────────────────────────────────────────────────────────────────


KINDS = [
    ("gpt-4o", {}, "openai openai https://api.openai.com/v1 gpt-4o"),
    ("azure/mine", {"api_base": "https://x.openai.azure.com/"}, "openai azure https://x.openai.azure.com mine"),
    ("azure/mine", {"api_base": "https://x.example/openai/v1/"}, "openai azure-v1 https://x.example/openai/v1 mine"),
    ("claude-3-opus-20240229", {}, "anthropic openai https://api.anthropic.com claude-3-opus-20240229"),
    ("ollama/llama3", {"api_base": "http://10.0.0.5:11434"}, "openai ollama http://10.0.0.5:11434/v1 llama3"),
    ("hosted_vllm/a/b", {"api_base": "http://10.0.0.5:8000/v1"}, "openai vllm http://10.0.0.5:8000/v1 a/b"),
    ("x", {"custom_llm_provider": "groq"}, "openai groq https://api.groq.com/openai/v1 x"),
    ("openai/x", {"api_base": "os.environ/BASE"}, f"openai openai {ANYTHING} x"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "params", "expected"), KINDS)
def test_a_provider_becomes_a_kind_of_server(convert, model, params, expected):
    imported, _ = convert(config(deployment(model, **params)))
    [entry] = imported.models
    [target] = entry.targets
    kind = (entry.upstream, entry.server, target.base_url, target.model)
    assert " ".join(kind) == expected


def test_every_provider_is_one_that_the_gateway_has(convert):
    models = [
        deployment(f"{name}/x", name, api_base="https://x.example/v1")
        for name in PROVIDERS
    ]
    imported, _ = convert(config(*models))
    assert [entry.name for entry in imported.models] == [*PROVIDERS]


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-3-5-sonnet-20241022", "budget"),
        ("claude-sonnet-4-20250514", "budget"),
        ("claude-haiku-4-5-20251001", "budget"),
        ("claude-opus-4-6", "adaptive"),
        ("claude-sonnet-5", "unasked"),
        ("claude-fable-5", "unasked"),
        ("something", "adaptive"),
    ],
)
def test_the_version_of_claude_says_how_it_thinks(model, thinking):
    assert thinking_of(model) == thinking


def test_settings_of_a_deployment_and_of_all(convert):
    settings = {"drop_params": True, "num_retries": 2, "request_timeout": 9}
    imported, notes = convert(
        config(
            deployment(
                "openai/gpt-4o",
                timeout=30,
                stream_timeout=0.5,
                max_retries=4,
                organization="org-1",
                extra_body={"a": 1},
                api_key="os.environ/KEY",
                temperature=0.2,
                input_cost_per_token=1e-6,
            ),
            deployment("mistral/x", "small"),
            deployment("text-embedding-3-small", "embed"),
            litellm_settings=settings,
        )
    )
    large, small, embed = imported.models
    assert (large.timeouts.total_s, large.timeouts.first_byte_s) == (30, 0.5)
    assert (large.retries, small.retries) == (4, 2)
    assert small.timeouts.total_s == 9
    assert large.extra_headers == {"OpenAI-Organization": "org-1"}
    assert large.extra_body == {"a": 1}
    assert large.drop_params is small.drop_params is True
    assert (large.responses, small.responses, embed.responses) == (True, False, False)
    assert embed.inference_type == "embedding"
    place = "model_list[0].litellm_params"
    assert f"{place}.temperature: is not used: extra_body would win" in notes
    assert f"{place}.input_cost_per_token: enter it in the admin" in notes


def test_deployments_of_a_name_are_targets_and_other_servers_its_fallbacks(convert):
    imported, notes = convert(
        config(
            deployment("openai/a", api_base="https://one.example/v1", rpm=60),
            deployment("openai/a", api_base="https://two.example/v1", rpm=600),
            deployment("groq/b", rpm=6),
            deployment("openai/a", api_base="https://one.example/v1", rpm=60),
            router_settings={
                "routing_strategy": "latency-based-routing",
                "model_group_alias": {"big": "large", "hid": {"model": "large"}},
            },
        )
    )
    large, other, big, hid = imported.models
    weights = {target.base_url: target.weight for target in large.targets}
    assert weights == {"https://one.example/v1": 60, "https://two.example/v1": 600}
    assert (large.balance, large.fallbacks) == ("latency", ("large (2)",))
    assert (other.server, big.targets, hid.name) == ("groq", large.targets, "hid")
    [budget] = imported.budgets
    assert (budget.counts, budget.window, budget.limit) == ("requests", "minute", 726)
    assert budget.models == {"large", "large (2)", "big", "hid"}
    assert "large (2) are fallbacks of it" in notes


def test_fallbacks_of_each_kind(convert):
    imported, notes = convert(
        config(
            *(deployment("gpt-4o", name) for name in ("a", "b", "c")),
            litellm_settings={
                "fallbacks": [{"a": ["b", {"model": "c"}, "nowhere"]}],
                "context_window_fallbacks": [{"b": ["c"]}],
                "default_fallbacks": ["c"],
                "content_policy_fallbacks": [{"a": ["b"]}],
            },
        )
    )
    a, b, c = imported.models
    assert (a.fallbacks, b.fallbacks, c.fallbacks) == (("b", "c"), ("c",), ())
    assert b.context_fallbacks == ("c",)
    assert "there is no entry nowhere" in notes
    assert "litellm_settings.content_policy_fallbacks: has no counterpart" in notes


def test_budgets_of_models_users_providers_and_all(convert):
    seven = {"budget_limit": 7, "time_period": "1d"}
    imported, notes = convert(
        config(
            deployment("gpt-4o", tpm=1000, max_budget=5, budget_duration="1d"),
            deployment("groq/x", "small", rpm=5),
            deployment("groq/y", "small"),
            litellm_settings={
                "max_budget": 100,
                "budget_duration": "30d",
                "max_internal_user_budget": 3,
                "internal_user_budget_duration": "12h",
            },
            router_settings={"provider_budget_config": {"groq": seven, "xai": seven}},
        )
    )
    shown = [(b.counts, b.window, b.limit, sorted(b.models)) for b in imported.budgets]
    assert shown == [
        ("tokens", "minute", 1000, ["large"]),
        ("cost", "day", 5, ["large"]),
        ("cost", "month", 100, []),
        ("cost", "day", 7, ["small"]),
    ]
    assert "max_internal_user_budget: is left out: it must be of a minute" in notes
    assert "others of small have none" in notes
    assert "xai: no entry is of this provider" in notes


def test_the_budget_of_each_user_has_a_counter_for_each_principal(convert):
    settings = {
        "max_internal_user_budget": 3,
        "internal_user_budget_duration": "7d",
    }
    imported, _ = convert(config(deployment("gpt-4o"), litellm_settings=settings))
    [budget] = imported.budgets
    assert (budget.per, budget.window, budget.limit) == (("principal",), "week", 3)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"model_name": "x"}, "it needs model_name and litellm_params.model"),
        (deployment("openai/*", "*"), "a wildcard has no counterpart"),
        (deployment("bedrock/x"), "the provider bedrock has no counterpart"),
        (deployment("nobody-knows"), "the provider of nobody-knows has no counterpart"),
        (deployment("hosted_vllm/x"), "it needs api_base"),
        (
            deployment("openai/dall-e-3")
            | {"model_info": {"mode": "image_generation"}},
            "the mode image_generation has no counterpart",
        ),
    ],
)
def test_a_deployment_without_a_counterpart_is_left_out(convert, item, reason):
    imported, notes = convert(config(item, deployment("gpt-4o", "left")))
    assert [entry.name for entry in imported.models] == ["left"]
    assert f"model_list[0]: is left out: {reason}" in notes


def test_an_entry_that_the_gateway_refuses_is_left_out_with_all_that_names_it(convert):
    bad = deployment("openai/x", "bad", api_base="not an address", rpm=5)
    imported, notes = convert(
        config(
            bad,
            deployment("gpt-4o", "good"),
            litellm_settings={"fallbacks": [{"good": ["bad"]}]},
        )
    )
    [good] = imported.models
    assert (good.fallbacks, imported.budgets) == ((), ())
    assert "bad: is left out: base_url: must be an http or https" in notes


def test_what_has_no_counterpart_is_named_with_its_place(convert):
    _, notes = convert(
        config(
            deployment("gpt-4o", tags=["a"]) | {"model_info": {"id": "7"}},
            litellm_settings={"success_callback": ["langfuse"]},
            general_settings={"master_key": "sk-1234"},
            guardrails=[{"guardrail_name": "x"}],
            environment_variables={"REDIS_HOST": "secret-host"},
        )
    )
    places = [line.partition(":")[0] for line in notes.splitlines()]
    assert places == [
        "model_list[0].litellm_params.tags",
        "model_list[0].model_info.id",
        "general_settings.master_key",
        "litellm_settings.success_callback",
        "environment_variables.REDIS_HOST",
        "guardrails",
        "The environment needs OPENAI_API_KEY.",
    ]
    assert "secret-host" not in notes


# ── Secrets ─────────────────────────────────────────────────────────────────────────


def test_a_key_in_the_file_becomes_a_variable_and_is_nowhere_shown(tmp_path):
    secret, other = "sk-0123456789", "Bearer sk-header"
    source = tmp_path / "config.yaml"
    source.write_text(
        config(
            deployment("gpt-4o", "my-model", api_key=secret),
            deployment("gpt-4o-mini", "small", api_key=secret),
            deployment("gpt-5", "x", extra_headers={"Authorization": other}),
            deployment("gpt-5", "y", api_key="os.environ/SMALL_2_API_KEY"),
            deployment("gpt-5", "small 2", api_key="sk-third"),
            general_settings={"master_key": secret},
            credential_list=[
                {
                    "credential_name": "one",
                    "credential_values": {"api_key": "sk-of-credential"},
                }
            ],
            litellm_settings={"cache_params": {"password": secret}},
        )
    )
    out, err = StringIO(), StringIO()
    call_command("import_litellm_config", source, stdout=out, stderr=err)
    for text in (out.getvalue(), err.getvalue()):
        assert "sk-" not in text
    assert out.getvalue().count("${MY_MODEL_API_KEY}") == 2
    assert "${SMALL_2_API_KEY_2}" in out.getvalue()
    assert "${AUTHORIZATION}" in out.getvalue()
    note = "model_list[0].litellm_params.api_key: put what stands there into the "
    assert f"{note}variable MY_MODEL_API_KEY" in err.getvalue()
    assert "MY_MODEL_API_KEY, " in err.getvalue().splitlines()[-1]


def test_a_credential_is_that_of_each_deployment_that_names_it(convert):
    values = {"api_base": "https://x.openai.azure.com", "api_version": "2024-10-21"}
    credential = {"credential_name": "one", "credential_values": values}
    named = {"litellm_credential_name": "one"}
    imported, notes = convert(
        config(
            deployment("azure/x", **named),
            deployment("azure/y", "other", litellm_credential_name="two"),
            credential_list=[credential],
        )
    )
    [entry] = imported.models
    assert entry.targets[0].base_url == values["api_base"]
    assert entry.api_version == "2024-10-21"
    assert "litellm_credential_name: is not one of credential_list" in notes


# ── Bad files ───────────────────────────────────────────────────────────────────────

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty"),
        ("- a\n", "must be a mapping"),
        ("model_list: {}\n", "model_list: must be a list"),
        ("model_list: [5]\n", r"model_list\[0\]: must be a mapping"),
        ("model_list: [{litellm_params: []}]\n", "litellm_params: must be a mapping"),
        ("model_list: [{model_name: 5}]\n", "model_name: must be a text"),
        ("litellm_settings: {drop_params: maybe}\n", "drop_params: must be true or"),
        ("litellm_settings: {fallbacks: [{a: b}]}\n", "a: must be a list"),
        ("router_settings: {fallbacks: [{a: [[]]}]}\n", "must be a list of names"),
        ("a: [\n", "is not YAML"),
        ("a: *nowhere\n", "is not YAML"),
        ("- model_name: *\n", "is not YAML"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (BOMB, "has more than 100000 values"),
        ("a: &a [*a]\n", "is nested deeper than 50 levels"),
        ("a: !!python/object/apply:os.system [ls]\n", "is not YAML"),
        ("a: " + "[" * 1000 + "]" * 1000, "is not YAML"),
        ("x: " + "y" * 1_048_577, "is over 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(convert, text, fault):
    with pytest.raises(CommandError, match=fault):
        convert(text)


def test_a_file_that_exists_or_is_missing_is_left_alone(convert, tmp_path):
    source = tmp_path / "there.yaml"
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_litellm_config", source)
    source.write_text(config(deployment("gpt-4o")))
    with pytest.raises(CommandError, match="File exists"):
        call_command("import_litellm_config", source, output=Path(source))
    assert "model_list" in source.read_text()
