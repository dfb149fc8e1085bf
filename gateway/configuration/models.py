"""Reading the part `models` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import urlsplit

from gateway.chat.upstreams.registry import KINDS
from gateway.configuration.shapes import (
    INFERENCE_TYPES,
    SUPPORTS,
    Allow,
    ModelEntry,
    Target,
    Timeouts,
)
from gateway.configuration.yaml import Value, has, identity_name, present
from gateway.identity import is_name

UPSTREAMS = tuple(KINDS)
TARGET_KEYS = ("base_url", "model", "api_key")
MODEL_KEYS = (
    *("name", "upstream", *TARGET_KEYS, "targets"),
    *("inference_type", "supports", "stream_usage", "allow", "timeouts"),
)


def models(value: Value, *, environ: Mapping[str, str]) -> tuple[ModelEntry, ...]:
    found: dict[str, ModelEntry] = {}
    for item in value.items():
        model = _model(item, environ)
        if model is None:
            continue
        if model.name in found:
            item.fault(f"a model named {model.name} is given twice")
        found[model.name] = model
    return tuple(found.values())


def _model(value: Value, environ: Mapping[str, str]) -> ModelEntry | None:
    keys = value.mapping(MODEL_KEYS)
    if not has(value, keys, ("name", "upstream")):
        return None
    name, upstream = (
        keys["name"].text(maximum=128),
        _one_of(keys["upstream"], UPSTREAMS),
    )
    if name is None or upstream is None:
        return None
    inference_type = partial(_one_of, known=INFERENCE_TYPES)
    return ModelEntry(
        name=name,
        upstream=upstream,
        targets=_targets(value, keys, name=name, upstream=upstream, environ=environ),
        inference_type=present(keys, "inference_type", inference_type, "chat"),
        supports=present(keys, "supports", _supports, None),
        stream_usage=present(keys, "stream_usage", Value.boolean, True),
        allow=present(keys, "allow", _allow, Allow()),
        timeouts=present(keys, "timeouts", _timeouts, Timeouts()),
    )


def _one_of(value: Value, known: Sequence[str]) -> str | None:
    text = value.text()
    if text is not None and text not in known:
        value.fault(f"must be one of {', '.join(known)}")
        return None
    return text


def _targets(
    value: Value,
    keys: Mapping[str, Value],
    *,
    name: str,
    upstream: str,
    environ: Mapping[str, str],
) -> tuple[Target, ...]:
    read = partial(_target, name=name, upstream=upstream, environ=environ)
    if "targets" not in keys:
        return (read(value, keys),)
    if beside := [key for key in TARGET_KEYS if key in keys]:
        value.fault(f"has both targets and {', '.join(beside)}")
    items = keys["targets"].items()
    if not items:
        keys["targets"].fault("needs at least one target")
    return tuple(read(it, it.mapping((*TARGET_KEYS, "weight"))) for it in items)


def _target(
    value: Value,
    keys: Mapping[str, Value],
    *,
    name: str,
    upstream: str,
    environ: Mapping[str, str],
) -> Target:
    if KINDS[upstream].needs_base_url:
        has(value, keys, ("base_url",))
    weight = partial(Value.integer, minimum=1, maximum=1000)
    return Target(
        base_url=present(keys, "base_url", _base_url, ""),
        model=present(keys, "model", Value.text, name),
        api_key=present(keys, "api_key", partial(Value.secret, environ=environ), ""),
        weight=present(keys, "weight", weight, 1),
    )


def _base_url(value: Value) -> str | None:
    url = value.text()
    try:
        parts = urlsplit(url or "")
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname)
        sound = sound and (parts.port or 1) > 0 and not (parts.query or parts.fragment)
    except ValueError:
        sound = False
    if url is not None and not sound:
        value.fault("must be an http or https address without a query")
        return None
    return None if url is None else url.rstrip("/")


def _supports(value: Value) -> frozenset[str]:
    found: set[str] = set()
    for item in value.items():
        name = _one_of(item, SUPPORTS)
        if name in found:
            item.fault("given twice")
        elif name is not None:
            found.add(name)
    return frozenset(found)


def _allow(value: Value) -> Allow | None:
    if value.node.value == "everyone":
        return Allow()
    keys = value.mapping(("tenants", "principals"))
    if not keys:
        value.fault("must be everyone, or name tenants or principals")
    return Allow(
        everyone=False,
        tenants=present(keys, "tenants", _names, frozenset()),
        principals=present(keys, "principals", _principals, frozenset()),
    )


def _names(value: Value) -> frozenset[str]:
    return frozenset(name for name in map(identity_name, value.items()) if name)


def _principals(value: Value) -> frozenset[tuple[str, str]]:
    found = set()
    for item in value.items():
        tenant, slash, principal = (item.text() or "").partition("/")
        if slash and is_name(tenant) and is_name(principal):
            found.add((tenant, principal))
        else:
            item.fault("must be tenant/principal")
    return frozenset(found)


def _timeouts(value: Value) -> Timeouts:
    default = Timeouts()
    keys = value.mapping(tuple(Timeouts.__slots__))
    read = partial(Value.seconds, minimum=0.01, maximum=86_400)
    return Timeouts(
        connect_s=present(keys, "connect_s", read, default.connect_s),
        first_byte_s=present(keys, "first_byte_s", read, default.first_byte_s),
        idle_s=present(keys, "idle_s", read, default.idle_s),
        total_s=present(keys, "total_s", read, default.total_s),
    )
