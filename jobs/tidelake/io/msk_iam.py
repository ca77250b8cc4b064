"""Log in to Amazon MSK by IAM (OAUTHBEARER). AWS's signer makes the tokens from the process's credentials. The only user of that library.

    [source.kafka]
    "sasl.mechanism" = "AWS_MSK_IAM"   # the name in other tools; librdkafka has no such mechanism
    "aws.region" = "eu-west-1"         # only if neither the brokers' names nor AWS_REGION has it

https://github.com/aws/aws-msk-iam-sasl-signer-python: it contacts only the source of the credentials, and its tokens are valid for a
quarter of an hour.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from tidelake.errors import ConfigError, StorageError

MECHANISM = "AWS_MSK_IAM"

_REGION = "aws.region"
_MECHANISMS = ("sasl.mechanism", "sasl.mechanisms")  # librdkafka accepts both names
_BROKER = re.compile(r"\.kafka(?:-serverless)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.amazonaws\.com")


def is_wanted(settings: Mapping[str, Any]) -> bool:
    """Return whether the client's settings ask for this log-in."""
    return any(settings.get(name) == MECHANISM for name in _MECHANISMS)


def librdkafkas(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for librdkafka, without those of this log-in."""
    if not is_wanted(settings):
        return dict(settings)
    return {name: value for name, value in settings.items() if name not in (_REGION, *_MECHANISMS)}


def logged_in(settings: Mapping[str, Any], servers: str, section: str) -> dict[str, Any]:
    """Return the settings for librdkafka, with a token callback if this log-in is wanted. The client calls it before each token expires.

    servers: `host:port,…`; section: the section of feed.toml, for messages. Raises ConfigError if the library or the region is missing,
    StorageError (NO_CREDENTIALS).
    """
    if not is_wanted(settings):
        return dict(settings)
    provider, region = signer(section), _region(settings, servers, section)

    def token(_: str | None) -> tuple[str, float]:
        """Return a token and its expiry in seconds since 1970."""
        text, expires_ms = provider.generate_auth_token(region)
        return text, expires_ms / 1000

    try:
        token(None)
    except Exception as e:  # credential sources raise any error; the client would only report a failed callback
        nothing = isinstance(e, AttributeError)  # botocore found no credentials: None
        why = "the process has no AWS credentials" if nothing else f"{type(e).__name__}: {e}"
        raise StorageError(
            f"[{section}.kafka]: no token for {MECHANISM} in {region}: {why}",
            code="NO_CREDENTIALS",
            remedy="give it credentials, by environment, profile or role, that may connect to the cluster",
        ) from e
    return {"security.protocol": "SASL_SSL"} | librdkafkas(settings) | {"sasl.mechanisms": "OAUTHBEARER", "oauth_cb": token}


def signer(section: str) -> Any:
    """Return the signer library. Raises ConfigError if it is not installed."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise ConfigError(
            f"[{section}.kafka]: {MECHANISM} needs a library that is not installed", remedy="pip install 'tidelake[msk]'"
        ) from None
    return MSKAuthTokenProvider


def _region(settings: Mapping[str, Any], servers: str, section: str) -> str:
    named = _BROKER.search(servers)
    said = settings.get(_REGION) or (named and named[1]) or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not said:
        raise ConfigError(f"[{section}.kafka]: {MECHANISM} needs the cluster's region", remedy=f'add "{_REGION}" = "…", or set AWS_REGION')
    return str(said)
