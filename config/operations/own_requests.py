"""How commands call an instance of ours over HTTP."""

from __future__ import annotations

from typing import Any

import requests
from requests.adapters import HTTPAdapter

from webhooks_core.network.certificates import client_context


class TrustingAdapter(HTTPAdapter):
    """Trusts the certificate authorities that every other outgoing connection trusts."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, ssl_context=client_context(), **options)


def session() -> requests.Session:
    """Return a session that ignores proxies and .netrc: the instance is called directly."""
    created = requests.Session()
    created.trust_env = False
    created.mount("https://", TrustingAdapter())
    return created
