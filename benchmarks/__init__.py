"""Measurements against servers of this machine, which a proxy of the environment cannot reach."""

from __future__ import annotations

import os

for _name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[_name]
