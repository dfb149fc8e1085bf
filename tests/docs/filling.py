"""Rows for the lists of the products, each with parents of its own: none may be read one by one."""

from factory.declarations import SubFactory

from tests.catalog.factories import BookFactory, CategoryFactory
from tests.gateway.chat.factories import (
    ModelEndpointFactory,
    ModelPriceFactory,
    RequestRecordFactory,
)
from tests.gateway.factories import (
    GatewayKeyFactory,
    PortalLinkFactory,
)
from tests.recording.factories import (
    GrantFactory,
    PersonalTokenFactory,
    RecordingFactory,
    RefreshTokenFactory,
)

FACTORIES = (
    *(RecordingFactory, PersonalTokenFactory, GrantFactory, RefreshTokenFactory),
    *(GatewayKeyFactory, PortalLinkFactory),
    *(RequestRecordFactory, ModelPriceFactory, ModelEndpointFactory),
)


def fill_products(number: int) -> None:
    """Create so many rows more for each list of the catalogue, recording and the gateway."""
    BookFactory.create_batch(number, category=SubFactory(CategoryFactory))
    for factory in FACTORIES:
        factory.create_batch(number)
