"""The first hour: the demo, and an event that arrives at a receiver of one's own."""

import signal
import sqlite3
from contextlib import closing

import requests

from tests.e2e.starting import Instance, outcomes
from tests.running import free_port


def count(instance: Instance, table: str) -> int:
    with closing(sqlite3.connect(instance.data)) as connection:
        found = connection.execute(f"select count(*) from {table}")  # noqa: S608
        return int(found.fetchone()[0])


def test_the_demo_shows_a_line_of_each_product_and_leaves_nothing(instance):
    tables = (
        "recording_personaltoken",
        "recording_recording",
        "catalog_book",
        "catalog_author",
    )
    headers = {"Authorization": f"Bearer {instance.token}"}
    address = f"{instance.url}/v1/webhooks"
    before = [count(instance, table) for table in tables]
    webhooks = requests.get(address, headers=headers, timeout=60).json()
    with instance.run("demo") as it:
        assert it.status() == 0, it.output
        book, event, chat = it.lines
    assert book.startswith("✔ catalog: Notes on the Analytical Engine by Lovelace")
    assert event.startswith("✔ recording: summary.completed evt_")
    assert "signature verified" in event
    assert chat.startswith("✔ gateway: 'Who wrote the first program?' in ")
    assert [count(instance, table) for table in tables] == before
    assert requests.get(address, headers=headers, timeout=60).json() == webhooks


def test_what_the_demo_misses_is_named(instance):
    silence = ("demo", "--url", f"http://127.0.0.1:{free_port()}")
    (outcome,) = outcomes(silence, environment=instance.variables)
    assert outcome.status == 1
    assert "nothing answers at" in outcome.output
    assert "Traceback" not in outcome.output


def test_a_subscribed_receiver_shows_a_verified_event_in_a_line(instance):
    arguments = ("--subscribe", "recording:demo", "--port", "0")
    with instance.run("webhooks_listen", *arguments) as it:
        it.wait_for("Listening on")
        assert it.lines[0].startswith("Listening on")
        instance.manage("import_recording", "--sample", "--account", "demo")
        it.wait_for("recording signature verified")
        assert it.end(signal.SIGINT) == 0
        assert it.lines[-1].rstrip() == "Stopped."
        [line] = [each for each in it.lines if "summary.completed" in each]
    assert "✔ summary.completed  evt_" in line
    with instance.run("webhooks_listen", "--subscribe", "nothing:demo") as it:
        assert it.status() == 1
