"""The connection. Django looks for its class in a module of this name."""

from __future__ import annotations

import select

from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that a request may use without asking the server first (docs/adr/0073)."""

    def is_usable(self) -> bool:
        return self._is_silent() or super().is_usable()

    def _is_silent(self) -> bool:
        """Return True if nothing came from the server since the last transaction.

        Something that came is the end of the connection, or a notice: then the server is asked.
        """
        if (
            self.connection is None
            or self.connection.info.transaction_status != TransactionStatus.IDLE
        ):
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
