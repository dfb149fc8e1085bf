"""A password hasher that tells who hashes, and lets nobody finish before it is told to."""

from __future__ import annotations

import threading

from django.contrib.auth.hashers import MD5PasswordHasher


class Watch:
    """What the hashers of one test share."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.lock = threading.Lock()
        self.hashes = self.running = self.most = 0


class WatchedHasher(MD5PasswordHasher):
    """MD5 behind a gate. The class keeps the watch: Django makes the instances."""

    algorithm = "watched"
    watch = Watch()

    def encode(self, password: str, salt: str) -> str:
        watch = self.watch
        with watch.lock:
            watch.hashes += 1
            watch.running += 1
            watch.most = max(watch.most, watch.running)
        watch.gate.wait(60)
        with watch.lock:
            watch.running -= 1
        return super().encode(password, salt)
