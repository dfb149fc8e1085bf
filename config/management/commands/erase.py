"""Erase a tenant of the gateway, or an account of recording, with all data.

Without --yes nothing is changed: the command shows how many rows of each kind there are. A tenant can
be erased again, as after a restore; each line is 0 if nothing was left.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandError

from gateway import keys
from gateway.erasure import tenant_erasure
from gateway.identity import NAME_RULE, is_name
from recording.accounts import erasure as recording
from recording.accounts.owners import user_named
from webhooks_core.upkeep.removal import StaticEndpointError

log = structlog.stdlib.get_logger(__name__)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        owner = parser.add_mutually_exclusive_group(required=True)
        owner.add_argument("--tenant", help="a tenant of the gateway")
        owner.add_argument("--account", metavar="USER", help="a user name")
        parser.add_argument("--yes", action="store_true", help="erase permanently")

    def handle(
        self, *args: Any, tenant: str | None, account: str | None, **options: Any
    ) -> None:
        try:
            if tenant is not None:
                counts = _tenant(tenant, is_wanted=options["yes"])
            else:
                counts = _account(str(account), is_wanted=options["yes"])
        except StaticEndpointError as error:
            raise CommandError(
                f"GATEWAY_CONFIG declares subscriptions of this tenant ({error}). Remove them"
                " there, run `manage.py sync_gateway_config`, and erase the tenant then."
            ) from error
        for name, count in counts.items():
            self.stdout.write(f"{name:<28}{count:>12,}")
        if options["yes"]:
            log.info("data erased", kind="tenant" if account is None else "account")
            self.stdout.write("Erased.")
        else:
            self.stdout.write("Nothing was changed. Add --yes to erase all of this.")


def _tenant(tenant: str, *, is_wanted: bool) -> dict[str, int]:
    if not is_name(tenant):
        raise CommandError(f"tenant: {NAME_RULE}")
    erasure = tenant_erasure(tenant)
    erasure.check()
    counts = erasure.count()
    if is_wanted:
        if keys.revoke_all(tenant):
            # Until then another process may still accept a key, and store what it sends.
            time.sleep(keys.CACHE_S)
        erasure.erase()
    return counts


def _account(username: str, *, is_wanted: bool) -> dict[str, int]:
    account = user_named(username)
    counts = recording.account_erasure(account).count()
    if is_wanted:
        recording.erase(account)
    return counts | {"accounts": 1}
