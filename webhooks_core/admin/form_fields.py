"""Fields of forms in the admin."""

from __future__ import annotations

from typing import Any

from django import forms


class LinesField(forms.JSONField):
    """A list of texts, one a line."""

    widget = forms.Textarea(attrs={"rows": 3})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in (value or "").splitlines() if line.strip()]
