from __future__ import annotations

import pytest

from tests.spec import matrix


@pytest.mark.parametrize("document", matrix.DOCUMENTS)
def test_every_rule_is_named_by_a_test(document):
    tests = matrix.marked()
    texts = [rule for _, rule in matrix.rules(document)]
    assert len(set(texts)) == len(texts) > 20
    assert [rule for rule in texts if (document, rule) not in tests] == []


@pytest.mark.parametrize("document", matrix.DOCUMENTS)
def test_every_rule_is_proved_by_a_test_of_the_quick_suite(document):
    tests = matrix.marked(slow=False)
    texts = [rule for _, rule in matrix.rules(document)]
    assert [rule for rule in texts if (document, rule) not in tests] == []


def test_every_mark_names_a_rule():
    known = {
        (document, rule)
        for document in matrix.DOCUMENTS
        for _, rule in matrix.rules(document)
    }
    named = {key for key in matrix.marked() if key[0] in matrix.DOCUMENTS}
    assert named - known == set()


def test_the_page_is_up_to_date():
    assert matrix.PAGE.read_text() == matrix.page(), "run python -m tests.spec.matrix"
