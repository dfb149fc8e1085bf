"""The gateway and the upstream of harness.py as fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.chat.harness import Gateway, Loop, MockUpstream, answers, running


@pytest.fixture
def loops() -> Iterator[tuple[Loop, Loop]]:
    made = Loop(), Loop()
    yield made
    for it in made:
        it.stop()


@pytest.fixture
def upstream(loops) -> Iterator[MockUpstream]:
    it = MockUpstream(loops[1], script=answers({}))
    it.start()
    yield it
    it.stop()


@pytest.fixture
def gateway(loops, upstream) -> Iterator[Gateway]:
    with running(Gateway(loops[0], upstream)) as it:
        it.declare()
        yield it
