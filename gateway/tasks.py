"""What django-q2 calls on a schedule."""

from __future__ import annotations

from gateway import retention


def remove_old() -> None:
    retention.remove_old()
