"""Tables of budgets: those of the admin, and the counters of all."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from gateway import configuration
from gateway.configuration.shapes import COUNTED, WINDOWS, BudgetEntry


class Budget(models.Model):
    """A budget of the admin; like an entry of `budgets:`."""

    name = models.CharField(max_length=64, unique=True)
    counts = models.CharField(
        max_length=16, choices=[(name, name) for name in COUNTED], default=COUNTED[0]
    )
    window = models.CharField(
        max_length=16,
        choices=[(name, name) for name in WINDOWS],
        default=WINDOWS[-1],
        help_text="By the calendar in UTC; a week begins on Monday.",
    )
    limit = models.DecimalField(
        max_digits=19,
        decimal_places=9,
        help_text="Requests, tokens, or a cost in the currency of the prices.",
    )
    per = models.JSONField(
        default=list,
        blank=True,
        help_text="What has a counter of its own. None means one counter for all.",
    )
    tenants = models.JSONField(
        default=list, blank=True, help_text="Whose requests count, one a line."
    )
    principals = models.JSONField(
        default=list,
        blank=True,
        help_text="One tenant/principal a line. Without both, the requests of all count.",
    )
    only_models = models.JSONField(
        "models",
        default=list,
        blank=True,
        help_text="Names of model endpoints, one a line; empty means all.",
    )
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def entry(self) -> BudgetEntry:
        """Return the row as an entry of the configuration. Raises EntryError."""
        same = ("name", "counts", "window", "per", "tenants", "principals")
        values = {name: getattr(self, name) for name in same}
        others = {"limit": float(self.limit), "models": self.only_models}
        return configuration.budget(values | others)


class BudgetCounter(models.Model):
    """What one subject of a budget has used in one window, of all processes.

    `subject` names it as a denial does; "" if the budget has one counter. `amount` counts requests,
    tokens, or billionths of the prices' currency. `window` is the Unix time of its start.
    """

    budget = models.CharField(max_length=64)
    subject = models.CharField(max_length=600, blank=True)
    window = models.BigIntegerField()
    # Of the subject, so that a tenant can be erased; "" if the counter is of several.
    tenant = models.CharField(max_length=128, blank=True)
    amount = models.BigIntegerField(default=0)
    # The highest share of the limit that was reported, in percent.
    reported = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "subject", "window"], name="budget_counter_once"
            )
        ]
        indexes = [models.Index(fields=["window"], name="budget_counter_age")]

    def __str__(self) -> str:
        return f"{self.budget} {self.subject}"
