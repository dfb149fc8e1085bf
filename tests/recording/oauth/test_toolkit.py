"""The toolkit and oauthlib are extended by their public hooks alone."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from recording import oauth
from recording.oauth.validator import Validator

LIBRARIES = ("oauth2_provider.", "oauthlib.")
# Django's model metaclass sets these on every model.
SET_BY_DJANGO = {"_meta", "_default_manager", "_base_manager", "_state"}


def _subclasses() -> Iterator[type]:
    for module in pkgutil.walk_packages(oauth.__path__, f"{oauth.__name__}."):
        if ".migrations" in module.name:
            continue
        for value in vars(import_module(module.name)).values():
            if isinstance(value, type) and value.__module__ == module.name:
                yield value


def private_overrides(cls: type) -> set[str]:
    """Return the private names of a library's class that this subclass defines again."""
    return {
        name
        for base in cls.__mro__[1:]
        if base.__module__.startswith(LIBRARIES)
        for name in vars(base).keys() & vars(cls).keys()
        if name.startswith("_") and not name.startswith("__")
    } - SET_BY_DJANGO


def test_no_private_name_of_a_library_is_overridden() -> None:
    overrides = {cls.__name__: private_overrides(cls) for cls in _subclasses()}
    assert {"Validator", "Application", "Grant"} <= overrides.keys()
    assert not any(overrides.values()), overrides


def test_a_private_override_is_detected() -> None:
    class Careless(Validator):
        def _create_authorization_code(self) -> None: ...

    assert private_overrides(Careless) == {"_create_authorization_code"}
