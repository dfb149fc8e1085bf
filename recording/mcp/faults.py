"""What pydantic finds wrong with the arguments of a call, in short."""

from __future__ import annotations

from pydantic import ValidationError


def describe(error: ValidationError) -> str:
    """Return each fault with its place."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
        for fault in faults
    )
