"""A configuration of LiteLLM's proxy as one of the gateway. Pure.

What has no counterpart becomes a note with its place. A deployment whose values the gateway refuses
is left out, so that the result is always a valid configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.configuration.file import faults
from gateway.configuration.litellm import deployments, limits
from gateway.configuration.litellm.deployments import Defaults
from gateway.configuration.litellm.entries import Entries
from gateway.configuration.litellm.providers import PROVIDERS
from gateway.configuration.litellm.source import (
    ImportRefusedError,
    Notes,
    Section,
    check_size,
    variables_in,
)

STRATEGIES = {"latency-based-routing": "latency", "simple-shuffle": "weight"}
REDIS = "is the setting REDIS_URL"
CACHE = "is cache of an entry, for requests of temperature 0 or that ask for it"
TEXTS: Mapping[str, Mapping[str, str]] = {
    "general_settings": {
        "master_key": "operators use the admin and commands; callers have gateway keys",
        "database_url": "is the setting DATABASE_URL, which LiteLLM's tables do not fit",
        "max_parallel_requests": "is the setting CHAT_REQUESTS_AT_ONCE, of each key",
    },
    "router_settings": dict.fromkeys(
        ("redis_url", "redis_host", "redis_port", "redis_password"), REDIS
    ),
    "litellm_settings": {
        "request_timeout": "is total_s of the entries",
        **dict.fromkeys(("cache", "cache_params"), CACHE),
    },
}


@dataclass(frozen=True, slots=True)
class Imported:
    """The gateway's configuration, notes for its reader, and the variables that it needs."""

    configuration: dict[str, Any]
    notes: list[str]
    variables: list[str]


def convert(content: Any) -> Imported:
    """Return the gateway's configuration. Raises ImportRefusedError."""
    check_size(content)
    keys = {provider.key for provider in PROVIDERS.values()}
    notes = Notes(reserved=variables_in(content) | keys)
    file = Section.of(content, (), notes)
    if not file.values:
        raise ImportRefusedError("is empty")
    general, router, module = (file.section(name) for name in TEXTS)
    defaults = _defaults(file, router, module)
    items = [deployments.read(each, defaults) for each in file.sections("model_list")]
    known = [item for item in items if item is not None]
    entries = Entries(notes, balance=_balance(router))
    entries.add(known)
    entries.add_aliases(router.section("model_group_alias"))
    for section in (module, router):
        entries.add_fallbacks(section)
    entries.leave_out(lambda entry: faults("models", entry))
    budgets = _usable(
        [
            *limits.of_models(known, entries, notes),
            *limits.of_settings(module, router, known, entries),
        ],
        notes,
    )
    for section, texts in zip((general, router, module), TEXTS.values(), strict=True):
        section.note_rest(texts)
    _note_environment(file)
    file.note_rest({})
    configuration = {"models": entries.all(), "budgets": budgets}
    configuration = {name: value for name, value in configuration.items() if value}
    return Imported(configuration, notes.texts, entries.needed(notes.variables))


def _defaults(file: Section, router: Section, module: Section) -> Defaults:
    retries = [section.number("num_retries") for section in (router, module)]
    return Defaults(
        drop_params=module.flag("drop_params"),
        retries=next(filter(None, retries), None),
        timeout_s=router.number("timeout") or module.number("request_timeout"),
        credentials=dict(_credentials(file)),
    )


def _usable(budgets: list[dict[str, Any]], notes: Notes) -> list[dict[str, Any]]:
    """Return the budgets that the gateway accepts, each name once."""
    usable: dict[str, dict[str, Any]] = {}
    for budget in budgets:
        if texts := faults("budgets", budget):
            notes.texts.append(f"{budget['name']}: is left out: {'; '.join(texts)}")
        elif budget["name"] in usable:
            notes.texts.append(f"{budget['name']}: is left out: there is one already")
        else:
            usable[budget["name"]] = budget
    return [*usable.values()]


def _credentials(file: Section) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for each in file.sections("credential_list"):
        name = each.text("credential_name")
        each.take("credential_info")
        yield name, each.section("credential_values").values
        each.note_rest({})


def _balance(router: Section) -> str:
    strategy = router.text("routing_strategy")
    if strategy and strategy not in STRATEGIES:
        text = f"is not {strategy}, which has no counterpart, but by weight"
        router.note("routing_strategy", text)
    return STRATEGIES.get(strategy, "weight")


def _note_environment(file: Section) -> None:
    variables = file.section("environment_variables")
    for name in variables.values:
        variables.note(name, "set it in the environment of the process")
