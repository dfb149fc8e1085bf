"""The items of LiteLLM's `model_list`, each as one target of an entry of `models`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.configuration.litellm.providers import (
    PROVIDERS,
    Provider,
    split,
    thinking_of,
)
from gateway.configuration.litellm.source import NO_COUNTERPART, VARIABLE, Section
from webhooks_core.web.faults import Place

MAX_RETRIES = 10
# Keys that servers without one are given anyway.
NO_KEYS = {"none", "null", "empty"}
SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
# The modes of LiteLLM, and the types of inference.
MODES = {"chat": "chat", "completion": "chat", "responses": "chat"} | {
    "embedding": "embedding"
}
FORCED = "is not used: extra_body would win over what a request asks for"
PRICE = "enter it in the admin, under Model prices"
TEXTS = {
    **dict.fromkeys(
        (
            *("temperature", "max_tokens", "max_completion_tokens", "top_p", "stop"),
            *("seed", "presence_penalty", "frequency_penalty", "reasoning_effort"),
        ),
        FORCED,
    ),
    **dict.fromkeys(("input_cost_per_token", "output_cost_per_token"), PRICE),
    "tags": "has no counterpart: give entries names, and say in allow who may use them",
}


@dataclass(frozen=True, slots=True)
class Defaults:
    """What settings of LiteLLM say for every deployment."""

    drop_params: bool = False
    retries: float | None = None
    timeout_s: float | None = None
    credentials: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A target, the settings of its entry, and its limits."""

    name: str
    place: Place
    provider: str
    target: dict[str, Any]
    settings: dict[str, Any]
    weight: float | None
    limits: Mapping[str, float | None]
    cost: tuple[float, Any] | None


def read(item: Section, defaults: Defaults) -> Deployment | None:
    """Return a deployment; None, and a note, for one that has no counterpart."""
    name, params = item.text("model_name"), item.section("litellm_params")
    info = item.section("model_info")
    _add_credential(params, defaults)
    model, mode = params.text("model"), info.text("mode") or "chat"
    provider_name, upstream_model = split(model, params.text("custom_llm_provider"))
    provider = PROVIDERS.get(provider_name)
    reason = _reason(name, model, provider_name, mode)
    if provider is None or reason:
        item.notes.add(item.place, f"is left out: {reason}")
        return None
    target = {"base_url": _base_url(params, provider), "model": upstream_model}
    if not target["base_url"]:
        item.notes.add(item.place, "is left out: it needs api_base")
        return None
    if key := _key(params, provider, name):
        target["api_key"] = key
    settings = _settings(params, provider, target, defaults)
    settings |= _kind(mode, provider, target)
    limits = {
        "requests": params.number("rpm") or item.number("rpm"),
        "tokens": params.number("tpm") or item.number("tpm"),
    }
    weight, cost = params.number("weight"), _cost(params)
    for section in (item, params, info):
        section.note_rest(TEXTS)
    return Deployment(
        name, item.place, provider_name, target, settings, weight, limits, cost
    )


def _cost(params: Section) -> tuple[float, Any] | None:
    """Return the cost that a deployment may cause, and the duration in which it may."""
    cost, duration = params.number("max_budget"), params.take("budget_duration")
    return None if cost is None else (cost, duration)


def _add_credential(params: Section, defaults: Defaults) -> None:
    name = params.text("litellm_credential_name")
    if not name:
        return
    if name not in defaults.credentials:
        params.note("litellm_credential_name", "is not one of credential_list")
    for key, value in defaults.credentials.get(name, {}).items():
        params.values.setdefault(key, value)


def _reason(name: str, model: str, provider: str, mode: str) -> str:
    """Return why a deployment is left out; empty if it is not."""
    if not (name and model):
        return "it needs model_name and litellm_params.model"
    if "*" in name or "*" in model:
        return "a wildcard has no counterpart, so each model needs its own item"
    if provider not in PROVIDERS:
        return f"the provider {provider or 'of ' + model} {NO_COUNTERPART}"
    if mode not in MODES:
        return f"the mode {mode} {NO_COUNTERPART}"
    return "the name of the model must stand in the file" if "${" in model else ""


def _base_url(params: Section, provider: Provider) -> str:
    base_url = params.text("api_base") or params.text("base_url")
    params.take("base_url")
    if not base_url:
        return provider.base_url
    base_url = base_url.rstrip("/")
    if not provider.suffix or base_url.endswith(provider.suffix):
        return base_url
    if base_url.startswith("${"):
        params.note("api_base", f"the variable must end with {provider.suffix}")
        return base_url
    return base_url + provider.suffix


def _key(params: Section, provider: Provider, name: str) -> str:
    """Return a reference to the key. One that stands in the file itself is not copied."""
    key = params.text("api_key")
    if not key:
        return params.notes.variable(provider.key) if provider.key else ""
    if key.startswith("${"):
        return key
    if key.lower() in NO_KEYS:
        return ""
    place = (*params.place, "api_key")
    return params.notes.secret(key, f"{name}_api_key", place)


def _settings(
    params: Section, provider: Provider, target: Mapping[str, Any], defaults: Defaults
) -> dict[str, Any]:
    """Return the keys of the entry that LiteLLM has for each deployment."""
    settings: dict[str, Any] = {"upstream": provider.upstream}
    server = provider.server
    if server == "azure" and target["base_url"].endswith("/openai/v1"):
        server = "azure-v1"
    if server != "openai":
        settings["server"] = server
    version = params.text("api_version")
    if version.startswith("${"):
        params.note("api_version", "must stand in the file")
    elif version and server == "azure":
        settings["api_version"] = version
    settings |= _tolerance(params, defaults)
    total_s = params.number("timeout", "request_timeout") or defaults.timeout_s
    times = {"first_byte_s": params.number("stream_timeout"), "total_s": total_s}
    if times := {name: value for name, value in times.items() if value}:
        settings["timeouts"] = times
    return settings


def _tolerance(params: Section, defaults: Defaults) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    drop = params.flag("drop_params") or defaults.drop_params
    names = [str(name) for name in params.items("additional_drop_params")]
    if drop and names:
        text = "is not used: drop_params leaves out what the server does not have"
        params.note("additional_drop_params", text)
    if drop or names:
        settings["drop_params"] = drop or names
    if headers := _headers(params):
        settings["extra_headers"] = headers
    if body := params.section("extra_body").values:
        settings["extra_body"] = body
        if VARIABLE.search(str(body)):
            params.note("extra_body", "cannot have variables of the environment")
    retries = params.number("max_retries", "num_retries") or defaults.retries
    if retries:
        settings["retries"] = min(round(retries), MAX_RETRIES)
    return settings


def _headers(params: Section) -> dict[str, str]:
    headers = params.section("extra_headers")
    headers.values.update(params.section("headers").values)
    if organization := params.take("organization"):
        headers.values["OpenAI-Organization"] = organization
    texts = {name: headers.text(name) for name in [*headers.values]}
    for name, text in texts.items():
        if SECRET_HEADER.search(name) and not text.startswith("${"):
            texts[name] = params.notes.secret(text, name, (*headers.place, name))
    return texts


def _kind(mode: str, provider: Provider, target: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the model is: its type of inference, its way to think, its APIs."""
    settings: dict[str, Any] = {}
    is_embedding = MODES[mode] == "embedding" or "embedding" in target["model"]
    if is_embedding:
        settings["inference_type"] = "embedding"
    if provider.upstream == "anthropic":
        thinking = thinking_of(target["model"])
        if thinking != "adaptive":
            settings["thinking"] = thinking
    has_responses = provider.has_responses and target["base_url"] == provider.base_url
    if not is_embedding and (has_responses or mode == "responses"):
        settings["responses"] = True
    return settings
