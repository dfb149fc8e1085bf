"""Run `check --deploy` as a production instance would, with every variable set on purpose."""

import os
import subprocess
import sys

from cryptography.fernet import Fernet

PRODUCTION = {
    "ENVIRONMENT": "production",
    "SECRET_KEY": Fernet.generate_key().decode() + "0123456789abcdef",
    "ALLOWED_HOSTS": "signpost.example",
    "BASE_URL": "https://signpost.example",
    "DATABASE_URL": "postgres://signpost@127.0.0.1:5432/signpost",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "OAUTH_ALLOWED_REDIRECTS": "",
    "WEBHOOK_SECRET_KEYS": Fernet.generate_key().decode(),
    "GATEWAY_CONFIG": "gateway/sample.yaml",
}


def main() -> int:
    environment = os.environ | PRODUCTION
    collect = ["manage.py", "collectstatic", "--noinput", "-v0"]
    subprocess.run([sys.executable, *collect], env=environment, check=True)
    command = ["manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    return subprocess.run(
        [sys.executable, *command], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
