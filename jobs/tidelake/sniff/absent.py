"""Errors for a URI without objects, or one that cannot be listed: what is there instead, and what to do."""

from __future__ import annotations

from pathlib import Path

from tidelake.errors import ConfigError, StorageError
from tidelake.io.storage import Store, open_store

_REMEDIES = {  # by a word in the AWS client's message
    "NoSuchBucket": "there is no such bucket at this endpoint: check its name, AWS_REGION and AWS_ENDPOINT_URL_S3",
    "Unable to locate credentials": "give credentials as to every AWS program: AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or a role",
    "AccessDenied": "these credentials may not list it: they need s3:ListBucket on the bucket and s3:GetObject on its objects",
    "ExpiredToken": "the credentials have expired: log in again",
    "InvalidAccessKeyId": "no such access key at this endpoint: check AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL_S3",
    "SignatureDoesNotMatch": "the secret key is not the access key's: check AWS_SECRET_ACCESS_KEY",
    "PermanentRedirect": "the bucket is in another region: set AWS_REGION",
}
_MOST = 8


def explained(error: StorageError) -> StorageError:
    """Return the error of a listing with its remedy."""
    remedy = next((remedy for word, remedy in _REMEDIES.items() if word in error.message), error.remedy)
    return StorageError(error.message, code=error.code, remedy=remedy)


def nothing(store: Store) -> ConfigError:
    """Return the error for a URI without objects."""
    if store.uri.startswith("s3://"):
        return _no_prefix(store)
    path = Path(store.uri)
    what = "does not exist" if not path.exists() else "is not a folder" if not path.is_dir() else "is an empty folder"
    return ConfigError(f"{store.uri} {what}", code="NOTHING_THERE", remedy="give an archive's folder, or s3://bucket/prefix")


def _no_prefix(store: Store) -> ConfigError:
    above, _, name = store.uri.rpartition("/")
    if above in ("s3:/", "s3:"):
        return ConfigError(
            f"{store.uri} is an empty bucket", code="NOTHING_THERE", remedy="check the bucket's name and AWS_ENDPOINT_URL_S3"
        )
    parent = open_store(above)
    if parent.head(name) is not None:
        return ConfigError(
            f"{store.uri} is one object",
            code="NOTHING_THERE",
            remedy=f"give its folder, {above}, or a local copy of it: tidelake sniff FILE",
        )
    folders = parent.folders()
    more = f" and {len(folders) - _MOST} more" if len(folders) > _MOST else ""
    there = f"below {above} there are {', '.join(folders[:_MOST])}{more}" if folders else f"nor is there any folder below {above}"
    return ConfigError(f"no object is below {store.uri}", code="NOTHING_THERE", remedy=there)
