"""Decisions of policies: who was denied (or allowed) what, and why."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class PolicyDecision(models.Model):
    """One decision of a policy about a principal, an action and a resource."""

    public_id = models.CharField(max_length=40, unique=True)
    tenant = models.CharField(max_length=128)
    principal = models.CharField(max_length=128)
    action = models.CharField(max_length=128)
    resource = models.CharField(max_length=255)
    reason = models.CharField(max_length=255, blank=True)
    allowed = models.BooleanField()
    request_id = models.CharField(max_length=128, blank=True)
    trace_id = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="decision_of_tenant")]

    def __str__(self) -> str:
        return self.public_id
