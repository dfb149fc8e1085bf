"""What tests use and a machine may lack: programs, packages of Python and Node, IPv6.

A skip names what is missing and how to get it.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.running import PATIENCE_S, ROOT

# How Debian and Ubuntu get a program whose package has another name.
PACKAGES = {
    "chown": "coreutils",
    "go": "golang-go",
    "initdb": "postgresql",
    "java": "default-jdk-headless",
    "node": "nodejs",
    "php": "php-cli",
    "mount": "util-linux",
    "runuser": "util-linux",
    "umount": "util-linux",
}
NPM_CI = [
    "npm",
    "ci",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
]


def reason(*programs: str) -> str:
    """Return why a test is skipped; "" if this machine has all of these programs."""
    missing = [name for name in programs if shutil.which(name) is None]
    packages = " ".join(PACKAGES.get(name, name) for name in missing)
    names = " and ".join(missing)
    return names and f"not installed: {names} (apt-get install {packages})"


def needs(*programs: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test where one of these programs is missing."""
    why = reason(*programs)
    return pytest.mark.skipif(bool(why), reason=why or "all are installed")


def require(*programs: str) -> None:
    """Skip the running test where one of these programs is missing."""
    if why := reason(*programs):
        pytest.skip(why)


@cache
def has_ipv6() -> bool:
    """Return True if a socket can listen on ::1."""
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


needs_ipv6 = pytest.mark.skipif(
    not has_ipv6(),
    reason="IPv6 is disabled (sysctl -w net.ipv6.conf.lo.disable_ipv6=0)",
)


def output_of(command: Sequence[str | Path], **options: Any) -> str:
    """Run a program to its end; return its output, or fail with all that it said."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE_S,
        **options,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return str(done.stdout)


def pip(*arguments: str, cwd: Path) -> None:
    """Run pip; skip the running test where there is none, or where it reaches no index."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named pip" in done.stderr:
        pytest.skip(f"not installed: pip ({sys.executable} -m ensurepip)")
    if done.returncode and "after connection broken by" in done.stderr:
        pytest.skip("pip reaches no package index: no network, or one behind a proxy")
    assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-3000:])


def node_packages(folder: Path) -> Path:
    """Return a folder with its Node packages, installed from their lock; skip where that is impossible.

    One test process installs; the others wait for it.
    """
    require("node")
    with (folder / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "node_modules" / ".package-lock.json").exists():
            require("npm")
            done = subprocess.run(
                NPM_CI,
                cwd=folder,
                env=os.environ | _npm_cache(),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                pytest.skip(
                    f"`npm ci` failed, which needs the package registry: {done.stderr[:300]}"
                )
    return folder


def _npm_cache() -> dict[str, str]:
    """Return where npm keeps its cache if it cannot do so in HOME."""
    if os.access(os.environ.get("HOME", "/nonexistent"), os.W_OK):
        return {}
    return {"npm_config_cache": str(ROOT / "var" / "npm-cache")}
