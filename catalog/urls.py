"""For a project that has the catalogue alone: `path("", include("catalog.urls"))`."""

from __future__ import annotations

from django.urls import path

from catalog.views import graphql

urlpatterns = [path("graphql", graphql)]
