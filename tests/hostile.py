"""What a stranger sends to control the terminal of somebody who reads it."""

CONTROLS = [
    "\x1b[2J",
    "\x9b31m",
    "\r",
    "\x00",
    "\x07",
    "\x7f",
    "\x85",
    "\u202e",
    "\u2028",
    "\ue000",
]


def is_printable(text: str) -> bool:
    """Return True if a text has lines and printable characters alone."""
    return all(c.isprintable() or c == "\n" for c in text)
