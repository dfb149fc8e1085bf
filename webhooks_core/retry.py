"""When to try again. Pure functions of the attempt number: no clock, no database."""

from __future__ import annotations
