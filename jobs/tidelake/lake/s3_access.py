"""How Spark's Python workers on other machines reach S3: by the variables in the driver's environment, as its JVM's executors do.

They travel as an option of the data source, so that neither command lines nor Spark's configuration hold them. A driver that has no key
in its environment (a profile, a role) gives none: its workers need a profile or role of their own.
"""

from __future__ import annotations

import json
import os

from tidelake import storage

OPTION = "s3_secret"  # the word `secret` is what Spark's redaction looks for

_PLACE = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
_KEY = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def given() -> str:
    """In the driver: the option's value."""
    return json.dumps({name: value for name in (*_PLACE, *_KEY) if (value := os.environ.get(name))})


def take(text: str) -> None:
    """In a worker: ask S3 from now on as the driver does. A key comes with its own token, or without one."""
    variables: dict[str, str] = json.loads(text or "{}")
    gone = [name for name in _KEY if name in os.environ and name not in variables] if _KEY[0] in variables else []
    if not gone and all(os.environ.get(name) == value for name, value in variables.items()):
        return
    for name in gone:
        del os.environ[name]
    os.environ.update(variables)
    storage.reset()
