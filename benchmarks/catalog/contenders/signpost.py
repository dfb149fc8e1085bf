"""The catalogue as it is served."""

from __future__ import annotations

from catalog.views import graphql as view

__all__ = ["view"]
