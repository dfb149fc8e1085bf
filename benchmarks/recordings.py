"""Time imports and searches of recordings with long transcripts, in a database of their own."""

from __future__ import annotations

import os
import random
import resource
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from statistics import quantiles
from typing import Any
from unittest.mock import patch

import orjson
from django.contrib.auth.models import AbstractUser, User
from django.core.management.base import BaseCommand
from django.db import connection

from benchmarks.catalog.servers import BENCHMARKS, prepare, run
from recording.library import importing
from recording.library.search import index, search
from webhooks_core.management.argument_types import integer_between

VOCABULARY = 30_000
SEGMENT = 15  # words
QUESTIONS = {
    "a word of every recording": "w0",
    "a word of one recording in 50": "lighthouse",
    "two words": "lighthouse w1",
    "a phrase of one recording in 10": '"harbour master"',
    "a phrase of none, of words of all": '"master harbour"',
    "a word of none": "absent",
}
SIZES = {
    "postgresql": "SELECT pg_total_relation_size('recording_searchterms'), "
    "pg_total_relation_size('recording_recording')",
    "sqlite": "SELECT SUM(pgsize) FILTER (WHERE name LIKE 'recording_search%'), "
    "SUM(pgsize) FILTER (WHERE name = 'recording_recording') FROM dbstat",
}


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--recordings", type=integer_between(4), default=200, help="%(default)s"
        )
        parser.add_argument(
            "--words",
            type=integer_between(1),
            default=170_000,
            help="of a transcript; the default makes 1 MB of text",
        )
        parser.add_argument(
            "--times", type=integer_between(2), default=20, help="each question"
        )
        parser.add_argument("--database-url", help="an empty database to use up")
        parser.add_argument("--ask", action="store_true", help="the default database")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["ask"]:
            self.measure(options["recordings"], options["words"], options["times"])
            return
        with tempfile.TemporaryDirectory() as folder:
            database = options["database_url"] or f"sqlite:///{folder}/bench.sqlite3"
            prepare(database)
            numbers = (
                f"--{name}={options[name]}" for name in ("recordings", "words", "times")
            )
            run(*BENCHMARKS, "recordings", "--ask", *numbers, database=database)

    def measure(self, count: int, words: int, times: int) -> None:
        """Import recordings, first a quarter without the index, and search them."""
        load = os.getloadavg()[0]
        without = self.fill("without", documents(count // 4, words), indexed=False)
        indexed = self.fill("indexed", documents(count, words), indexed=True)
        account = User.objects.get(username="indexed")
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("VACUUM ANALYZE")  # as autovacuum does within the minute
            cursor.execute(SIZES[connection.vendor])
            terms, stored = cursor.fetchone()
        self.stdout.write(
            f"{connection.vendor}, {count:,} recordings of {words:,} words: import {indexed:.0f} ms "
            f"per recording, {without:.0f} ms without the index, "
            f"index {terms / stored * 100:.0f} % of {stored / 1e6:.0f} MB"
        )
        self.stdout.write("\n| search | hits | p50 ms | p95 ms |\n|---|---:|---:|---:|")
        for name, query in QUESTIONS.items():
            self.stdout.write(f"| {name} | {asked(account, query, times)} |")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.stdout.write(
            f"\nAt most {memory:.0f} MB of memory; load average {load:.1f} before, "
            f"{os.getloadavg()[0]:.1f} after"
        )

    def fill(self, name: str, raws: Iterator[bytes], *, indexed: bool) -> float:
        """Import recordings into a new account; return the milliseconds of one."""
        account = User.objects.create_user(name)
        took = []
        with ExitStack() as stack:
            if not indexed:
                for function in ("terms_of", "store"):
                    # Not a mock, which keeps all arguments.
                    stack.enter_context(patch.object(index, function, lambda *_: ""))
            for raw in raws:
                started = time.perf_counter()
                importing.import_recording(
                    account=account, raw=raw, publish_event=False
                )
                took.append(time.perf_counter() - started)
        return sum(took) / len(took) * 1000


def documents(count: int, words: int) -> Iterator[bytes]:
    """Return recording files, the same in every run; the words are spread as in speech (Zipf)."""
    chance = random.Random(1)  # noqa: S311
    vocabulary = [f"w{number}" for number in range(VOCABULARY)]
    weights = [1 / (number + 1) for number in range(VOCABULARY)]
    for number in range(count):
        spoken = chance.choices(vocabulary, weights, k=words)
        spoken[-4:] = "master", "w0", "w1", "harbour"
        if number % 10 == 0:
            spoken[words // 2 : words // 2] = "harbour", "master"
        if number % 50 == 0:
            spoken.append("lighthouse")
        yield document(number, spoken)


def document(number: int, spoken: list[str]) -> bytes:
    parts = iter(spoken)
    lines = iter(lambda: " ".join(islice(parts, SEGMENT)), "")
    segments = [
        {
            "speaker": f"Speaker {at % 3}",
            "start": at * 5,
            "end": at * 5 + 5,
            "text": line,
        }
        for at, line in enumerate(lines)
    ]
    transcript = {"text": " ".join(spoken), "segments": segments}
    content = {"audio_id": f"aud_{number}", "title": f"Meeting {number}"}
    return orjson.dumps(content | {"transcript": transcript})


def asked(account: AbstractUser, query: str, times: int) -> str:
    """Return the hits of the first page, and the 50th and 95th percentile of its time."""
    took, hits = [], 0
    for _ in range(times + 1):  # the first one warms up
        started = time.perf_counter()
        hits = len(search(account, query).hits)
        took.append((time.perf_counter() - started) * 1000)
    percentiles = quantiles(took[1:], n=20, method="inclusive")
    return f"{hits} | {percentiles[9]:.0f} | {percentiles[18]:.0f}"
