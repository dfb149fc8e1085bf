"""Models and budgets that operators define in the admin, as the configuration file does."""

from __future__ import annotations

from django.db import models


class DefinedRow(models.Model):
    """A name, and an entry of the configuration file as YAML."""

    name = models.CharField(max_length=128, unique=True)
    definition = models.TextField(
        help_text="As YAML, like an entry of the configuration file, without its name."
    )
    is_active = models.BooleanField(default=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
