"""HTTP requests of commands to an instance of Signpost."""

from __future__ import annotations

from typing import Any

import requests
from requests.adapters import HTTPAdapter

from webhooks_core.network.pool import client_context


class TrustingAdapter(HTTPAdapter):
    """Trusts the same certificate authorities as every other outgoing connection."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, ssl_context=client_context(), **options)


def session() -> requests.Session:
    """Return a session that ignores proxies and .netrc: the instance is called directly."""
    direct = requests.Session()
    direct.trust_env = False
    direct.mount("https://", TrustingAdapter())
    return direct
