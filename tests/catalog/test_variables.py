from __future__ import annotations

import pytest

from tests.config.test_environment import fault


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CATALOG_WRITES", "perhaps"),
        ("CATALOG_WRITES", ""),
        ("CATALOG_ROW_BUDGET", "0"),
        ("CATALOG_ROW_BUDGET", "many"),
        ("CATALOG_INTROSPECTION", "perhaps"),
        ("CATALOG_SUGGESTIONS", "perhaps"),
    ],
)
def test_a_malformed_variable_is_a_start_up_error_that_names_it(name, value):
    assert f"{name}: " in fault({name: value})
