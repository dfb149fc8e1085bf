import pytest
from django.core.cache import cache

from tests.factories import UserFactory
from tests.products.product import PRODUCTS, Caller, Product
from tests.recording.conftest import Api


@pytest.fixture(params=PRODUCTS)
def product(request) -> Product:
    return PRODUCTS[request.param]


@pytest.fixture
def mine(db, product: Product) -> Caller:
    return product.caller("ada")


@pytest.fixture
def theirs(db, product: Product) -> Caller:
    return product.caller("mallory")


@pytest.fixture
def no_counts():
    """Forget the calls that other tests counted."""
    cache.clear()


@pytest.fixture
def api(db) -> Api:
    """A client of recording."""
    return Api(UserFactory.create(username="api"))
