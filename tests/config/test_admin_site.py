"""The admin site: what it lists, and the page of an unknown address."""

import pytest
from django.contrib import admin
from django.urls import reverse

pytestmark = pytest.mark.django_db


def lists() -> list[str]:
    return [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]


def test_operators_find_about_nineteen_lists_and_each_opens_and_searches(admin_client):
    assert len(lists()) <= 22
    labels = {model._meta.label for model in admin.site._registry}
    assert not labels & {"oauth2_provider.AccessToken", "recording_oauth.Grant"}
    for address in lists():
        for query in ("", "?q=nothing-of-this-name"):
            assert admin_client.get(address + query).status_code == 200, address


def test_no_action_of_a_list_is_an_internal_error(admin_client, rf, admin_user):
    request = rf.get("/admin/")
    request.user = admin_user
    for (model, pages), address in zip(
        admin.site._registry.items(), lists(), strict=True
    ):
        rows = list(model._default_manager.values_list("pk", flat=True))
        for action in pages.get_actions(request):
            data = {"action": action, "_selected_action": rows or [1]}
            response = admin_client.post(address, data | {"select_across": "1"})
            assert response.status_code < 500, (address, action)


def test_without_its_slash_the_address_leads_to_the_site(client):
    response = client.get("/admin")
    assert (response.status_code, response["Location"]) == (302, "/admin/")


@pytest.mark.parametrize("address", ["/nothing-here", "/accounts/nothing"])
def test_an_unknown_address_has_a_page_that_leads_home(client, address):
    response = client.get(address)
    assert response.status_code == 404
    assert "There is no such page" in response.content.decode()
    assert '<a href="/">' in response.content.decode()
