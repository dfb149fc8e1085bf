"""The admin site: its groups, what empty lists tell, and the page of an unknown address."""

from __future__ import annotations

from itertools import product

import pytest
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape
from django_q.models import Task

from recording.oauth.admin import HiddenAdmin
from tests.webhooks_core.admin.looking import looker, page
from webhooks_core.admin.base import CappedPaginator

pytestmark = pytest.mark.django_db

OAUTH = ["Access tokens", "Applications", "Grants", "Refresh tokens"]
THIRD_PARTIES = {"auth", "django_q"}


def groups(client, address) -> dict[str, list[str]]:
    shown = client.get(address).context["app_list"]
    assert len({group["name"] for group in shown}) == len(shown)
    return {
        group["name"]: [str(model["name"]) for model in group["models"]]
        for group in shown
    }


def ours() -> list[str]:
    return [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model, model_admin in admin.site._registry.items()
        if model._meta.app_label not in THIRD_PARTIES
        and type(model_admin) is not HiddenAdmin
    ]


@pytest.mark.parametrize("address", ["", "recording_oauth/", "oauth2_provider/"])
def test_the_oauth_models_of_two_apps_form_one_group(admin_client, address):
    assert groups(admin_client, f"/admin/{address}")["OAuth"] == OAUTH


def test_the_menu_and_the_breadcrumbs_name_that_group(admin_client):
    text = page(admin_client, "/admin/oauth2_provider/accesstoken/")
    assert "Django OAuth Toolkit" not in text
    menu = admin_client.get("/admin/").context["available_apps"]
    assert [group["name"] for group in menu].count("OAuth") == 1


def test_a_user_with_one_permission_sees_that_table_only(client):
    looker(client, ["view_accesstoken"])
    assert groups(client, "/admin/") == {"OAuth": ["Access tokens"]}
    assert groups(client, "/admin/oauth2_provider/") == {"OAuth": ["Access tokens"]}
    assert client.get("/admin/recording_oauth/").status_code == 200


def test_an_empty_list_says_where_its_rows_come_from(admin_client):
    admin_client.get("/admin/")
    for address in ours():
        answer = admin_client.get(address)
        hint = answer.context["cl"].model_admin.empty_hint
        assert (address, hint[-1:]) == (address, ".") or hint.endswith("?")
        text = answer.content.decode()
        assert (address, text.count("There is nothing here yet.")) == (address, 1)
        assert escape(hint) in text
        assert "Show everything" not in text


def test_a_search_that_finds_nothing_leads_back_to_everything(admin_client):
    for address in ours():
        text = page(admin_client, f"{address}?q=nothing-of-this-name")
        assert (address, text.count("Nothing fits the search")) == (address, 1)
        assert '<a href="?">Show everything</a>' in text
        assert "0 results" in text
        assert "There is nothing here yet." not in text


def test_a_list_with_rows_has_no_hint(admin_client):
    assert "There is nothing here yet." not in page(admin_client, "/admin/auth/user/")


def test_no_list_is_counted_without_a_bound():
    pages = admin.site._registry.values()
    assert all(model_admin.paginator is CappedPaginator for model_admin in pages)
    assert not any(model_admin.show_full_result_count for model_admin in pages)


@pytest.mark.parametrize("address", ["/nothing-here", "/accounts/nothing"])
def test_an_unknown_address_has_a_page_that_leads_home(client, address):
    text = page(client, address, 404)
    assert "There is no such page" in text
    assert '<a href="/">' in text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"q": "x" * 256}, "at most 255 characters"),
        ({"q": "x" * 60_000}, "at most 255 characters"),
        ({"q": "a " * 17}, "at most 16 words"),
        ({"q": "x" * 256, "all": ""}, "at most 255 characters"),
        ({"status__exact": "1" * 256}, "at most 255 characters"),
        ({"k" * 256: "1"}, "at most 255 characters"),
        ({"status__exact": ["1"] * 17}, "at most 16 filters"),
    ],
)
def test_a_search_that_is_too_long_is_refused(admin_client, query, words):
    response = admin_client.get("/admin/catalog/book/", query)
    assert response.context.get("cl") is None
    assert words in response.content.decode()


def test_a_search_that_is_too_long_is_refused_in_every_list(admin_client):
    for model in admin.site._registry:
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        response = admin_client.get(
            reverse(f"admin:{name}_changelist"), {"q": "x" * 256}
        )
        assert (name, response.context.get("cl")) == (name, None)
        assert "at most 255 characters" in response.content.decode()


def test_the_longest_search_is_run_in_every_list(admin_client):
    texts = ("x" * 255, "ab " * 16, f"'{'a ' * 100}'")
    for address, text in product(ours(), texts):
        response = admin_client.get(address, {"q": text})
        assert (address, response.status_code) == (address, 200)


def test_a_long_term_is_refused_where_a_field_completes_names(admin_client):
    field = {"app_label": "catalog", "model_name": "book", "field_name": "author"}
    for term, is_run in (("x" * 255, True), ("x" * 256, False), ("a " * 17, False)):
        query = field | {"term": term}
        response = admin_client.get(reverse("admin:autocomplete"), query)
        assert (response["Content-Type"] == "application/json") is is_run


def test_a_long_search_of_somebody_who_is_not_logged_in_leads_to_the_login(client):
    response = client.get("/admin/catalog/book/", {"q": "x" * 256})
    assert (response.status_code, response["Location"].partition("?")[0]) == (
        302,
        "/admin/login/",
    )


@pytest.mark.parametrize("action", ["resend_selected", "delete_selected"])
@pytest.mark.parametrize("row", ["\0", "abc", "-1", "9" * 40])
def test_an_action_on_what_is_no_row_is_a_bad_request(admin_client, action, row):
    data = {"action": action, "_selected_action": row}
    for address in ours():
        assert admin_client.post(address, data).status_code == 400, address


@pytest.mark.parametrize("filtered", ["pk__in", "id__in", "pk__gt", "id__exact"])
def test_a_filter_with_a_number_above_64_bits_is_no_internal_error(
    admin_client, filtered
):
    for address in ours():
        response = admin_client.get(address, {filtered: "9" * 40})
        assert response.status_code in {200, 302, 400}, address


def test_the_tasks_of_the_cluster_can_be_chosen(admin_client):
    now = timezone.now()
    task = {"func": "f", "name": "n", "started": now, "stopped": now, "success": True}
    Task.objects.create(id="0a" * 16, **task)
    data = {"action": "delete_selected", "_selected_action": "0a" * 16, "post": "yes"}
    assert admin_client.post("/admin/django_q/success/", data).status_code == 302
    assert not Task.objects.exists()


def test_a_filter_with_a_nul_is_no_internal_error(admin_client):
    for address in (
        "/admin/django_q/success/?id=%00",
        "/admin/auth/user/?username=%00",
    ):
        assert admin_client.get(address).status_code in {200, 302, 400}, address


def test_no_action_of_a_list_is_an_internal_error(admin_client, rf, admin_user):
    request = rf.get("/admin/")
    request.user = admin_user
    for model, pages in admin.site._registry.items():
        address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        rows = list(model._default_manager.values_list("pk", flat=True))
        for action in pages.get_actions(request):
            data = {"action": action, "_selected_action": rows or [1]}
            response = admin_client.post(address, data | {"select_across": "1"})
            assert response.status_code < 500, (address, action)
