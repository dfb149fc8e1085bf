#!/usr/bin/env python
"""Signpost's command line. `manage.py up` starts everything."""

from __future__ import annotations

import gc
import io
import os
import sys


def main() -> None:
    gc.disable()  # what imports make stays: the looks for garbage took a fifth of a start
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A character that the terminal cannot show must not end a command.
        sys.stdout.reconfigure(errors="backslashreplace")
    import django
    from django.core.exceptions import ImproperlyConfigured

    from config.command_line import CommandLine

    try:
        import config.settings  # noqa: F401 - so that every command reports a bad variable on one line

        django.setup()
        gc.freeze()  # processes that are forked share it
        gc.enable()
        CommandLine(sys.argv).execute()
    except ImproperlyConfigured as error:
        sys.exit(f"signpost: {error}")
    except KeyboardInterrupt:
        sys.exit(130)  # the status of a command that Ctrl-C ended
    except Exception as error:
        from config.operations import service_errors

        message = service_errors.describe(error)
        if message is None or "--traceback" in sys.argv:
            raise
        sys.exit(f"signpost: {message}")


if __name__ == "__main__":
    main()
