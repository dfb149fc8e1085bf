"""Two machines with a task cluster each, on one database and one broker."""

from tests.faults.rigged import WRITING

EVENTS = 30


def test_neither_a_frozen_machine_nor_one_whose_clock_differs_disturbs_another(
    postgres_site, open_ledger, tmp_path
):
    """One freezes inside a transaction. Then each sweeps while the other has claims."""
    site = postgres_site
    with site.another_machine(tmp_path, ahead=20) as ahead:
        with open_ledger(site, f"machine frozen {WRITING}") as ledger:
            frozen = site.cluster()
            ledger.publish(5)
            ledger.wait_until_delivered()
            site.arm(WRITING)
            with ledger.publishing(EVENTS):
                site.halted()
            ahead.cluster().wait_for("task cluster starts")
            with site.frozen():
                ledger.note_in_flight()
                site.watcher.call("change", ledger.owner)
                ledger.publish(EVENTS)
                ledger.wait_until_delivered()
            frozen.wait_for("database unavailable")
            ledger.publish(1)
            ledger.wait_until_delivered()
            outcomes = ledger.look()["outcomes"]
            assert outcomes.count("interrupted") == len(ledger.in_flight)

        fault = "clocks of two machines 20 s apart"
        with open_ledger(site, fault, delay=0.3) as ledger:
            ledger.publish(EVENTS)
            ahead.run("webhooks_dispatch")
            site.stop()
            ledger.publish(EVENTS)
            site.run("webhooks_dispatch")
            ledger.wait_until_delivered()
            assert set(ledger.look()["outcomes"]) == {"ok"}
            assert set(ledger.received.values()) == {1}
