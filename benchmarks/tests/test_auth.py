"""The benchmark runs, prints its figures, and deletes its rows."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from oauth2_provider.models import AccessToken

from benchmarks import login_flood, results
from benchmarks.__main__ import command
from benchmarks.auth import TOOLKIT, Bench, BenchError
from recording.models import PersonalToken
from recording.oauth.models import Application


@pytest.mark.django_db(transaction=True)
def test_the_benchmark_tells_rates_queries_and_cpu(monkeypatch):
    tables = {}
    monkeypatch.setattr(results, "save", lambda _, saved, **__: tables.update(saved))
    out = StringIO()
    call_command(command("auth"), "--ask", "--save", requests=2, stdout=out)
    output = out.getvalue()
    assert re.findall(r"\+(\d) queries", output) == ["0", "1", "1", "1"]
    assert "ms of CPU" in output
    # The page names the limit, and compares with the peer.
    assert list(tables["limits"]) == ["none", "OAuth token", "personal token"]
    assert list(tables["peers"]) == ["OAuth token", "personal token", TOOLKIT]
    for model in (get_user_model(), Application, AccessToken, PersonalToken):
        assert not model.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_benchmark_stops_at_an_answer_that_is_not_the_expected_one():
    bench = Bench()
    with pytest.raises(BenchError, match="GET /v1/webhooks: 401"):
        bench.get("rec_at_nonsense")


def test_a_flood_is_told_by_the_ratio_of_each_round():
    rounds = [([0.004], [0.008]), ([0.002], [0.010]), ([0.004], [0.012])]
    assert "4.0 ms alone, 10.0 ms beside" in login_flood.summary(rounds)
    assert "ratio 3.00 (2.00 to 5.00)" in login_flood.summary(rounds)


def test_a_fresh_clone_needs_no_database_of_its_own(capfd):
    call_command(command("auth"), requests=1)
    assert "GET /v1/webhooks, personal token:" in capfd.readouterr().out
