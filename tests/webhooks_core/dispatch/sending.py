"""Requests for a sender, and what came of them."""

from tests.running import PATIENCE_S, until
from webhooks_core.dispatch.sender import Sender
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.transport import AttemptResult, OutgoingRequest


def request(
    key: int, url: str, *, queue: int = 1, limit: int = 4, timeout_s=PATIENCE_S
):
    return OutgoingRequest(
        key=key,
        queue=queue,
        limit=limit,
        url=url,
        body=b"{}",
        sign=lambda _: {"Content-Type": "application/json"},
        timeout_s=timeout_s,
        networks=AllowedNetworks(loopback=True),
    )


def collect(sender: Sender, count: int) -> list[AttemptResult]:
    results: list[AttemptResult] = []

    def has_all() -> bool:
        results.extend(sender.collect(wait_s=0.02))
        return len(results) >= count

    until(has_all, f"{count} results")
    return results
