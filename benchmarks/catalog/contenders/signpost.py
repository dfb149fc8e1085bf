"""The catalogue as it is served."""

from __future__ import annotations

from catalog.http import graphql as view

__all__ = ["view"]
