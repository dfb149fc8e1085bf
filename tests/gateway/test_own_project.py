"""The gateway in somebody else's project: as docs/gateway.md says, and without `config`."""

import pytest
from cryptography.fernet import Fernet

from tests import own_project
from tests.docs.samples import filled, sample

PAGE = "gateway.md"
PROGRAM = """
from datetime import timedelta
from django.contrib.auth.models import User
from gateway import keys
from webhooks_core.dispatch.dispatcher import dispatch
from webhooks_core.models import Delivery, Endpoint

key = keys.create(tenant="acme", principal="ada").text
api = Client(headers={"Authorization": f"Bearer {key}"})
URL = "/v1/webhooks/subscriptions"

def post(path, body):
    return api.post(path, body, content_type="application/json")

assert post(URL, {"url": "http://127.0.0.1:9/"}).status_code == 400
created = post(URL, {"url": "http://203.0.113.7/", "secret": "s" * 16})
assert created.status_code == 400, created.content  # addresses of documentation are not public
created = post(URL, {"url": "http://93.184.216.34:9/"})
assert created.status_code == 201, created.content
assert post("/v1/ingest", {"text": "A text."}).status_code == 201
call_command("emit_event", "drift.detected", "--tenant", "acme")
rows = api.get(f"{URL}/{created.json()['id']}/deliveries").json()["items"]
assert [row["event_type"] for row in rows] == ["drift.detected", "ingest.completed"]

User.objects.create_superuser("op", password="p")
staff = Client()
staff.login(username="op", password="p")
for page in (
    "gateway/gatewaykey/add/",
    "webhooks_core/endpoint/1/change/", "webhooks_core/endpoint/failing/",
):
    assert staff.get(f"/admin/{page}").status_code == 200, page
form = {"tenant": "acme", "principal": "bob", "name": "", "days": ""}
assert b"gw_key_" in staff.post("/admin/gateway/gatewaykey/add/", form).content
api.delete(f"{URL}/{created.json()['id']}")
assert dispatch(linger=timedelta(0)) == 0
assert set(Delivery.objects.values_list("last_error", flat=True)) == {"endpoint deleted"}
print("all of it works")
"""


@pytest.mark.spec("gateway", "in a project of one's own")
def test_the_documented_settings_and_addresses_are_all_it_needs(tmp_path):
    key = {"…": Fernet.generate_key().decode()}
    settings = filled(sample(PAGE, "python", "own-settings"), key)
    printed = own_project.run(
        tmp_path,
        settings=own_project.WITH_ADMIN + settings,
        urls=own_project.ADMIN_URLS + sample(PAGE, "python", "own-urls"),
        program=PROGRAM,
    )
    assert printed.endswith("all of it works\n")
