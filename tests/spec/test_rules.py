"""Each rule of a specification has a test that names it, one that `make test` runs."""

import pytest

from tests.spec import matrix

RULES = [
    (document, rule) for document in matrix.DOCUMENTS for rule in matrix.rules(document)
]


def test_every_rule_has_a_text_of_its_own():
    assert len({*RULES}) == len(RULES)


@pytest.mark.parametrize("document", matrix.DOCUMENTS)
def test_every_rule_is_proved_by_a_quick_test(document):
    proved = {rule for of, rule in matrix.marked(slow=False) if of == document}
    rules = [*matrix.rules(document)]
    assert len(rules) > 10
    assert [rule for rule in rules if rule not in proved] == []


def test_every_mark_names_a_rule():
    assert matrix.marked() - {*RULES} == set()
