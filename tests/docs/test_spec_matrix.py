from __future__ import annotations

import pytest

from tests.spec import matrix

RULES = [
    (document, rule)
    for document in matrix.DOCUMENTS
    for _, rule in matrix.rules(document)
]


def test_every_rule_has_a_text_of_its_own():
    assert len({*RULES}) == len(RULES)
    for document in matrix.DOCUMENTS:
        assert len([*matrix.rules(document)]) > 20


@pytest.mark.parametrize("slow", [True, False])
def test_every_rule_is_proved_by_a_test_also_of_the_quick_suite(slow):
    tests = matrix.marked(slow=slow)
    assert [rule for rule in RULES if rule not in tests] == []


def test_every_mark_names_a_rule():
    assert {*matrix.marked()} - {*RULES} == set()


def test_the_page_is_up_to_date():
    assert matrix.PAGE.read_text() == matrix.page(), "run python -m tests.spec.matrix"
