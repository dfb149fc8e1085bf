"""The signature schemes. Pure functions of secret, time and body."""

from __future__ import annotations
