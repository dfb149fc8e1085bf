"""Whatever happens in whatever order: no event is lost, none moves once it is over.

A long search, and a short example of what the usual one has found:
`pytest --hypothesis-profile=long --timeout=0 tests/webhooks_core/dispatch/test_state_machine.py`.
"""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.webhooks_core.dispatch.engine_machine import LIMIT, Engine


@pytest.mark.usefixtures("commits_at_once")
@pytest.mark.parametrize(
    "examples", [6, pytest.param(60, marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_no_sequence_of_steps_loses_a_delivery(settings, use_profile, examples):
    settings.WEBHOOK_DISPATCHERS = 3
    use_profile(disable_after=LIMIT)
    run_state_machine_as_test(Engine, settings=search(examples))


def search(examples: int) -> settings:
    long = settings.get_current_profile_name() == "long"
    return settings(
        max_examples=2000 if long else examples,
        stateful_step_count=60 if long else 25,
        deadline=None,
        # To shrink what was found takes minutes: the long search does it.
        phases=set(Phase) - (set() if long else {Phase.shrink, Phase.explain}),
        suppress_health_check=list(HealthCheck),
    )
