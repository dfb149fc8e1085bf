"""A fast salted hash for client secrets: they are random, so a slow one protects no better."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.auth.hashers import BasePasswordHasher
from django.utils.crypto import constant_time_compare


class RandomSecretHasher(BasePasswordHasher):
    """Salted SHA-256, secure for secrets of 256 random bits only.

    PBKDF2, which passwords need, would cost each token request 400 ms.
    """

    algorithm = "random_sha256"

    def encode(self, password: str, salt: str) -> str:
        digest = hashlib.sha256(f"{salt}{password}".encode()).hexdigest()
        return f"{self.algorithm}${salt}${digest}"

    def decode(self, encoded: str) -> dict[str, Any]:
        algorithm, salt, digest = encoded.split("$", 2)
        return {"algorithm": algorithm, "salt": salt, "hash": digest}

    def verify(self, password: str, encoded: str) -> bool:
        expected = self.encode(password, self.decode(encoded)["salt"])
        return constant_time_compare(encoded, expected)

    def safe_summary(self, encoded: str) -> dict[Any, Any]:
        return {"algorithm": self.algorithm}

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Do nothing: there is no work factor."""
