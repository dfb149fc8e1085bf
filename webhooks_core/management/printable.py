"""Text of strangers for a terminal, which would obey control characters."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, OutputWrapper


def printable(text: str, *, keep: str = "") -> str:
    """Return a text with every unprintable character as an escape, but those to keep."""
    return _replaced(text, keep, lambda c: c.encode("unicode_escape").decode())


def printable_json(document: str) -> str:
    """Return the same JSON document with every unprintable character as an escape of JSON."""
    return _replaced(document, "\n", lambda c: json.dumps(c)[1:-1])


def _replaced(text: str, keep: str, escape: Callable[[str], str]) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair
    return "".join(c if c.isprintable() or c in keep else escape(c) for c in text)


class PrintableOutput(OutputWrapper):
    """The standard output or error of a command, on which lines and tabs alone are kept.

    What is written is flushed: an error is one of the command, which can still undo its work.
    """

    def write(  # type: ignore[override] # as Django's
        self, msg: str = "", *args: Any, **options: Any
    ) -> None:
        """Write and flush. Raises CommandError."""
        if self._out is None:
            raise CommandError("cannot write the result: the output is closed")
        try:
            super().write(printable(msg, keep="\n\t"), *args, **options)
            self.flush()
        except OSError as error:
            # Python writes the rest at its end, and would fail again.
            out: Any = self._out
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            reason = error.strerror or error
            raise CommandError(f"cannot write the result: {reason}") from error
