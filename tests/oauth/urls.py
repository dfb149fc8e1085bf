from __future__ import annotations

from django.http import JsonResponse
from django.urls import path

from config.urls import urlpatterns as real
from recording.oauth import access, metadata


def protected(request):
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if access.authenticate(token):
        return JsonResponse({"items": []})
    return JsonResponse(
        {"error": {"code": "unauthorized", "message": ""}},
        status=401,
        headers={
            "WWW-Authenticate": metadata.challenge(
                request.path, error="invalid_token" if token else ""
            )
        },
    )


urlpatterns = [path("v1/webhooks", protected), *real]
