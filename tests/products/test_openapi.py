"""The errors of the OpenAPI document."""

from gateway import errors as gateway
from recording import errors as recording
from tests.documented import DOCUMENT, assert_valid

HANDLERS = {"recording": recording.HANDLER, "gateway": gateway.HANDLER}


def test_every_error_fits_the_one_shape():
    for name, handler in HANDLERS.items():
        schema = DOCUMENT["components"]["schemas"][f"{name.title()}Error"]
        for kind in handler.kinds.values():
            assert_valid(handler.body(kind()), schema)
