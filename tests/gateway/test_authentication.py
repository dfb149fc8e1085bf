"""Who is calling: keys, identity headers, and the peers whose headers are believed."""

from datetime import timedelta

import pytest
from django.utils import timezone

from gateway import keys
from gateway.authentication import authenticate, authenticate_cached
from gateway.errors import UnauthorizedError
from gateway.identity import Caller
from gateway.keys import MISS, cached_caller, look_up
from gateway.models import GatewayKey
from tests.clock import travel
from tests.running import PATIENCE_S
from webhooks_core.models import bearer

pytestmark = pytest.mark.django_db


NAMES = {"tenant": "x-tenant-id", "principal": "x-principal-id"}


@pytest.fixture(autouse=True)
def _remembered(monkeypatch) -> None:
    """No key is forgotten only because the machine is slow."""
    monkeypatch.setattr(keys, "CACHE_S", PATIENCE_S)


def ask(*, peer="127.0.0.1", forwarded=False, **fields) -> Caller:
    headers = {NAMES.get(name, name): value for name, value in fields.items()}
    if forwarded:
        headers["x-forwarded-for"] = "192.0.2.99"
    return authenticate(headers, peer)


def refused(**changes) -> str:
    with pytest.raises(UnauthorizedError) as caught:
        ask(**changes)
    assert caught.value.status_code == 401
    assert caught.value.headers["WWW-Authenticate"].startswith("Bearer ")
    return str(caught.value.detail)


def make(**fields) -> keys.Created:
    return keys.create(**({"tenant": "acme", "principal": "ada"} | fields))


HEADERS = {"tenant": "acme", "principal": "ada"}


@pytest.mark.spec("gateway", "Authentication 1: bearer authorization")
@pytest.mark.parametrize(
    ("authorization", "tenant"),
    [
        *((f"{scheme}KEY", "acme") for scheme in ("Bearer ", "bearer ", "BEARER   ")),
        # A bearer token decides, whatever the headers say; of several, the first.
        ("Basic eDp5,Bearer KEY", "acme"),
        *((f"Bearer {token}", None) for token in ("", "x", "x,Bearer KEY", "\x00", "é")),
        *((text, None) for text in ("Bearer", "Basic eDp5 , bearer", "Bearer KEY,Bearer x")),
        pytest.param(f"Bearer {bearer.make('rec_pat_')}", None, id="another product's"),
        pytest.param(f"Bearer {bearer.make(keys.PREFIX)}", None, id="unknown key"),
        # Another scheme is a proxy's.
        ("Basic eDp5", "globex"),
    ],
)  # fmt: skip
def test_a_bearer_decides_who_calls(authorization, tenant):
    created, headers = make(), {"tenant": "globex", "principal": "gus"}
    sent = authorization.replace("KEY", created.text)
    if tenant is None:
        assert refused(**headers, authorization=sent) == "The gateway key is not valid."
    elif tenant == "acme":
        expected = Caller("acme", "ada", created.key.pk)
        assert ask(**headers, authorization=sent) == expected
        assert ask(authorization=sent, peer="192.0.2.7") == expected
    else:
        assert ask(**headers, authorization=sent).tenant == tenant
        refused(authorization=sent)


@pytest.mark.parametrize("name", ["x-api-key", "api-key"])
def test_a_key_may_stand_where_clients_of_other_apis_send_it(name):
    created, absent = make(), bearer.make(keys.PREFIX)
    assert ask(**{name: created.text}).key_id == created.key.pk
    assert refused(**{name: absent}) == "The gateway key is not valid."
    # A bearer token decides alone, and identity headers count before such a key.
    assert "not valid" in refused(authorization="Bearer x", **{name: created.text})
    assert ask(**HEADERS, **{name: created.text}).key_id is None
    assert "Send a gateway key" in refused(**{name: ""})


LOOPBACK = ["127.0.0.0/8", "::1/128"]


@pytest.mark.spec("gateway", "Authentication 1: header identity")
@pytest.mark.parametrize(
    ("local", "networks", "peer", "forwards", "believed"),
    [
        *((True, LOOPBACK, peer, False, True) for peer in ("127.0.0.1", "::1", "127.9.9.9")),
        (True, LOOPBACK, "::ffff:127.0.0.1", False, True),
        *((True, LOOPBACK, peer, False, False) for peer in ("192.0.2.7", "::ffff:192.0.2.7", "", "unix", "fe80::1%lo")),
        # Locally no setting names a proxy on loopback.
        (True, LOOPBACK, "127.0.0.1", True, False),
        (True, ["192.0.2.0/24"], "192.0.2.7", True, True),
        # In production exactly the named networks are believed.
        (False, ["127.0.0.1/32"], "127.0.0.1", True, True),
        (False, ["10.0.0.0/8"], "10.1.2.3", True, True),
        (False, ["10.0.0.0/8"], "::ffff:10.1.2.3", True, True),
        (False, ["10.0.0.0/8"], "11.1.2.3", True, False),
        (False, ["2001:db8::/32"], "2001:db8::7", True, True),
        (False, ["2001:db8::/32"], "2001:db9::7", True, False),
        (False, [], "127.0.0.1", True, False),
    ],
)  # fmt: skip
def test_the_headers_of_trusted_peers_are_believed(
    settings, local, networks, peer, forwards, believed
):
    settings.LOCAL, settings.GATEWAY_TRUSTED_PROXIES = local, networks
    if believed:
        assert ask(**HEADERS, peer=peer, forwarded=forwards) == Caller("acme", "ada")
    else:
        text = refused(**HEADERS, peer=peer, forwarded=forwards)
        assert text == "Identity headers are accepted from trusted proxies only."


@pytest.mark.parametrize(
    "headers",
    [
        {"tenant": "acme"},
        {"principal": "ada"},
        {"tenant": "", "principal": "ada"},
        {"tenant": "acme", "principal": "a b"},
        {"tenant": "acme,other", "principal": "ada"},
        {"tenant": "a" * 129, "principal": "ada"},
        {"tenant": "акме", "principal": "ada"},
        {"tenant": "acme\n", "principal": "ada"},
        {"tenant": "a\x00", "principal": "ada"},
    ],
)
def test_both_headers_are_needed_and_must_be_well_formed(headers):
    assert "both X-Tenant-Id and X-Principal-Id" in refused(**headers)


def test_a_name_may_have_128_of_its_characters():
    name = "A0._:@-" + "z" * 121
    assert ask(tenant=name, principal=name).tenant == name


def test_a_key_works_until_it_expires_even_when_it_is_cached():
    created = make(days=1)
    header = f"Bearer {created.text}"
    end = created.key.expires_at
    assert end is not None
    with travel(end - timedelta(seconds=1), tick=False) as clock:
        assert ask(authorization=header).tenant == "acme"
        clock.shift(1)
        refused(authorization=header)


def test_a_revoked_key_is_refused_at_once_here_and_soon_elsewhere():
    created = make()
    header = f"Bearer {created.text}"
    with travel(timezone.now(), tick=False) as clock:
        ask(authorization=header)
        GatewayKey.objects.revoke(timezone.now())  # another process
        ask(authorization=header)
        clock.shift(keys.CACHE_S)
        refused(authorization=header)
    again = make()
    ask(authorization=f"Bearer {again.text}")
    assert keys.revoke([again.key.pk]) == 1
    assert keys.revoke([again.key.pk]) == 0
    refused(authorization=f"Bearer {again.text}")


def test_a_key_that_is_revoked_while_it_is_looked_up_is_not_remembered(monkeypatch):
    created = make()
    monkeypatch.setattr(GatewayKey, "use", lambda key, _: keys.revoke([key.pk]))
    assert look_up(created.text) is not None
    assert cached_caller(created.text) is MISS
    assert look_up(created.text) is None


def test_what_is_remembered_is_forgotten_when_the_clock_is_set_back():
    created = make()
    ask(authorization=f"Bearer {created.text}")
    assert cached_caller(created.text) is not MISS
    with travel(timezone.now() - timedelta(hours=1)):
        assert cached_caller(created.text) is MISS


def test_a_key_costs_one_query_and_then_none(django_assert_num_queries):
    created = make()
    headers = {"authorization": f"Bearer {created.text}"}
    with django_assert_num_queries(0):  # an event loop asks so, and then in a thread
        assert authenticate_cached(headers, "") is MISS
    with django_assert_num_queries(2):  # the second notes the use, once an hour
        ask(authorization=f"Bearer {created.text}")
    keys._cache.clear()
    with django_assert_num_queries(1):
        ask(authorization=f"Bearer {created.text}")
    with django_assert_num_queries(0):
        ask(authorization=f"Bearer {created.text}")
        refused(authorization="Bearer nonsense")
        assert authenticate_cached(headers, "") == cached_caller(created.text)


def test_strangers_cannot_make_the_cache_grow(monkeypatch):
    monkeypatch.setattr(keys, "CACHE_SIZE", 3)
    unknown = [bearer.make(keys.PREFIX) for _ in range(5)]
    for token in unknown:
        assert look_up(token) is None
    assert [cached_caller(token) for token in unknown] == [MISS, MISS, None, None, None]
