"""Budgets: from LiteLLM's limits of deployments, providers, users, and of all. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gateway.configuration.litellm.deployments import Deployment
from gateway.configuration.litellm.entries import Entries
from gateway.configuration.litellm.source import Notes, Section

MAX_NAME = 64
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "mo": 30 * 86_400}
# LiteLLM's durations in seconds, and the calendar's window; a month has 28 to 31 days.
WINDOWS = {60: "minute", 3600: "hour", 86_400: "day", 7 * 86_400: "week"} | {
    days * 86_400: "month" for days in (28, 29, 30, 31)
}
NO_WINDOW = "is left out: it must be of a minute, hour, day, week or month"

Budget = dict[str, Any]


def window_of(duration: Any) -> str | None:
    """Return the window of a duration such as `30d`; None without one."""
    match = re.fullmatch(r"(\d{1,9})(s|m|h|d|w|mo)", str(duration or "").strip())
    return WINDOWS.get(int(match[1]) * UNITS[match[2]]) if match else None


def of_models(
    deployments: Sequence[Deployment], entries: Entries, notes: Notes
) -> Iterator[Budget]:
    """Yield the budgets of models: the sums of what their deployments may do."""
    for name, own in entries.groups.items():
        group = [each for each in deployments if each.name == name]
        for counts in ("requests", "tokens") if own else ():
            values = [each.limits[counts] for each in group]
            known = [value for value in values if value is not None]
            if known and len(known) == len(group):
                limit = max(1, round(sum(known)))
                title = f"{counts} a minute"
                yield _budget(f"{name}: {title}", counts, "minute", limit, own)
            elif known:
                text = f"its limit of {counts} is left out: others of {name} have none"
                notes.add(group[0].place, text)
        yield from _costs(name, own, group, notes)


def _costs(
    name: str, own: list[str], group: Iterable[Deployment], notes: Notes
) -> Iterator[Budget]:
    costs = [(each, each.cost) for each in group if each.cost is not None]
    for number, (deployment, (limit, duration)) in enumerate(costs):
        place = (*deployment.place, "litellm_params", "max_budget")
        if number or (window := window_of(duration)) is None:
            notes.add(place, "is left out: one of a name" if number else NO_WINDOW)
        elif own:
            yield _budget(f"{name}: cost", "cost", window, limit, own)


def of_settings(
    module: Section,
    router: Section,
    deployments: Sequence[Deployment],
    entries: Entries,
) -> Iterator[Budget]:
    """Yield the budgets of everything, of each user, and of providers."""
    yield from _of_all(module, "everything: cost", "max_budget", "budget_duration")
    for budget in _of_all(
        module,
        "each principal: cost",
        "max_internal_user_budget",
        "internal_user_budget_duration",
    ):
        yield budget | {"per": ["principal"]}
    providers = router.section("provider_budget_config")
    for name in [*providers.values]:
        config = providers.section(name)
        limit = config.number("budget_limit", "max_budget")
        window = window_of(config.take("time_period", "budget_duration"))
        own = [*_entries_of(name, deployments, entries.groups)]
        if limit is None or window is None or not own:
            providers.note(name, NO_WINDOW if own else "no entry is of this provider")
        else:
            yield _budget(f"provider {name}: cost", "cost", window, limit, own)


def _of_all(module: Section, title: str, key: str, duration: str) -> Iterator[Budget]:
    limit, window = module.number(key), window_of(module.take(duration))
    if limit is not None and window is not None:
        yield _budget(title, "cost", window, limit, [])
    elif limit is not None:
        module.note(key, NO_WINDOW)


def _entries_of(
    provider: str,
    deployments: Iterable[Deployment],
    groups: Mapping[str, Sequence[str]],
) -> dict[str, None]:
    return {
        name: None
        for each in deployments
        if each.provider == provider
        for name in groups[each.name]
    }


def _budget(
    name: str, counts: str, window: str, limit: float, models: list[str]
) -> Budget:
    budget: Budget = {
        "name": name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…",
        "counts": counts,
        "window": window,
        "limit": limit,
    }
    return budget | ({"models": models} if models else {})
