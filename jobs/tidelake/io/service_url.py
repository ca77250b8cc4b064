"""URLs of services (catalogs, databases, registries, S3 endpoints), which may hold a password. No other module parses or prints one.

The form is RFC 3986's: `scheme://user:password@host:port/path?option=value&…`. In user, password and options `%XX` is a byte and `+` is a
plus. A text with more than one reading (a `/`, `?` or `#` in a password, a `%` that begins no escape, an `&` that separates nothing) is
refused. Errors show nothing of it but its scheme.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from tidelake.errors import ConfigError

_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_WITHIN = "in a user or password write % as %25, @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and & as %26"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUrl:
    """A parsed URL with its escapes decoded. host: an IPv6 address without brackets; path: as written."""

    scheme: str
    host: str
    port: int | None
    user: str = field(repr=False)
    password: str = field(repr=False)
    path: str
    options: dict[str, str] = field(repr=False)

    @property
    def address(self) -> str:
        """`host:port` in the form of URLs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """The URL for messages, without user, password and options."""
        return f"{self.scheme}://{self.address}{self.path}"

    @property
    def login(self) -> str:
        """`user:password@`, escaped; empty without a user."""
        password = f":{quote(self.password, safe='')}" if self.password else ""
        return f"{quote(self.user, safe='')}{password}@" if self.user else ""


def service_url(text: str, what: str, remedy: str) -> ServiceUrl:
    """Parse a URL. what: its name in errors, like `lake.catalog`; remedy: its form. Raises ConfigError, which shows nothing of the URL."""
    problem = _problem(text)
    try:
        if problem is None:
            return _taken_apart(urlsplit(text, allow_fragments=False))  # `#` begins no fragment in the URLs of databases
    except ValueError as e:  # its message may hold the password
        problem = str(e) if isinstance(e, _Unclear) else "it is not a URL"
    raise ConfigError(f"{what}: {problem}", remedy=f"{remedy}; {_WITHIN}")


def without_login(text: str, what: str, remedy: str) -> ServiceUrl:
    """Parse a URL that may hold no user, password or option, because programs print it. Raises ConfigError without the URL."""
    url = service_url(text, what, remedy)
    if url.user or url.password or url.options:
        raise ConfigError(f"{what}: a URL with a user, password or option in it, which logs would show", remedy=remedy)
    return url


class _Unclear(ValueError):
    """An ambiguity in a URL, in Tidelake's words."""


def _problem(text: str) -> str | None:
    if _CONTROL.search(text):
        return "it holds a space or a non-printable character"
    if _BAD_ESCAPE.search(text):
        return "it holds a % that begins no %XX"
    return None


def _taken_apart(parts: SplitResult) -> ServiceUrl:
    if "@" in parts.path:
        raise _Unclear("an @ follows its host")
    if "#" in parts.path:
        raise _Unclear("a # follows its host")
    if not f"{parts.path}/".startswith("/"):
        raise _Unclear("it has no // before its host")
    if not _is_port(parts):
        raise _Unclear("its port is not a number from 1 to 65535")
    return ServiceUrl(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=parts.port,
        user=unquote(parts.username or "", errors="strict"),
        password=unquote(parts.password or "", errors="strict"),
        path=parts.path,
        options=_options(parts),
    )


def _is_port(parts: SplitResult) -> bool:
    address = parts.netloc.rpartition("@")[2].rpartition("]")[2]
    port = address.partition(":")[2]
    return (":" not in address or port.isdecimal()) and parts.port != 0


def _options(parts: SplitResult) -> dict[str, str]:
    if not parts.query:
        return {}
    try:
        pairs = parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError:
        raise _Unclear("an option of it is not name=value") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Unclear("it has an option twice")
    return dict(pairs)
