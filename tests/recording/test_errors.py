"""Errors outside the views: the owner of an address, and a database that is away."""

import os
import subprocess
import sys

import orjson
import pytest
from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent

from config import errors as config_errors
from tests.products.product import RECORDING

pytestmark = pytest.mark.django_db


def test_too_many_query_parameters_are_400(api):
    path = "webhook-events/samples?" + "&".join("a=1" for _ in range(1500))
    RECORDING.error(api.get(path), 400)


def test_too_large_a_form_elsewhere_is_reported_in_the_shape(rf):
    response = config_errors.bad_request(rf.post("/v1/x"), RequestDataTooBig())
    assert response.status_code == 413
    response = config_errors.bad_request(rf.post("/v1/x"), TooManyFieldsSent())
    assert response.status_code == 400


ASK = """
from django.core.wsgi import get_wsgi_application
get_wsgi_application()
from django.conf import settings
from django.test import Client
from webhooks_core.models import bearer as tokens
response = Client(raise_request_exception=False).get(
    "/v1/webhooks",
    headers={"Authorization": "Bearer " + tokens.make("rec_pat_"), "Host": "localhost"},
)
print(response.status_code, response["Retry-After"], response.content.decode())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["postgres://nobody:hidden@127.0.0.1:1/none", "sqlite:////nowhere/none.db"]
)
@pytest.mark.spec("recording", "503 unavailable with Retry-After")
def test_an_unavailable_database_is_503(url):
    process = subprocess.run(
        [sys.executable, "-c", ASK],
        env={"PATH": os.environ["PATH"], "DATABASE_URL": url}
        | {"DJANGO_SETTINGS_MODULE": "config.settings"},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    status, retry_after, body = process.stdout.split(maxsplit=2)
    assert (status, retry_after) == ("503", "5")
    assert orjson.loads(body)["error"]["code"] == "unavailable"
    assert "hidden" not in process.stdout + process.stderr
