"""kill -9 of parts of a whole instance, `manage.py up`, in the middle of its deliveries."""

import os
import signal
from contextlib import suppress

from tests.faults.site import Site, kill
from tests.running import Running, command_line, free_port, until

EVENTS = 100
WORDS = {"the web server": "manage.py web", "the task cluster": "manage.py qcluster"}


def test_what_waits_when_an_instance_is_killed_arrives_after_the_next_start(
    sqlite_site, open_ledger
):
    site = sqlite_site
    site.stop()
    for victim in [*WORDS, "the whole tree"]:
        up = start_instance(site)
        with open_ledger(site, f"kill -9 of {victim} of `up`", delay=0.4) as ledger:
            with ledger.publishing(EVENTS):
                until(lambda: len(ledger.received) >= 20, "some deliveries")
                with site.frozen():
                    ledger.note_in_flight()
                    assert len(ledger.received) < EVENTS * len(ledger.receivers)
                    kill_part(up, victim)
                assert up.status() == (1 if victim in WORDS else -9)
                assert (
                    victim not in WORDS or f"{victim} ended unexpectedly" in up.output
                )
                up.wait_until_nothing_is_left()
            for receiver in ledger.receivers:
                receiver.delay = 0
            if victim in WORDS:  # the next victims are of this instance
                start_instance(site)
            site.cluster()
            ledger.wait_until_delivered()


def kill_part(up: Running, victim: str) -> None:
    """Return when what was killed, and what dies with it, is gone."""
    word = WORDS.get(victim, "")
    doomed = {pid for pid in up.family() if word in command_line(pid)}
    killed = up.child(word) if word else up.pid
    children = up.children(killed)
    kill([killed] if word else doomed)
    # Children that die with a parent do so before the others go on.
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    until(lambda: not doomed & set(up.family()), "the end of the killed")


def start_instance(site: Site) -> Running:
    """Return the instance that runs, or a new one."""
    up = site.cluster("up", "--no-demo", "--port", str(free_port()))
    up.wait_for("Signpost is ready")
    return up
