"""Notifiers of feed.toml: from the import path of a class and its arguments to an instance.

The arguments that carry the message have defaults, if the class takes them and renders templates in them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module

from airflow.sdk import BaseNotifier

from tidelake.config.feed import Feed
from tidelake.config.notify import Notify
from tidelake.config.variables import expanded
from tidelake.errors import ConfigError

_SUBJECT, _TEXT, _HTML = "{{ notice.subject }}", "{{ notice.text }}", "{{ notice.html }}"
MESSAGE = {
    "subject": _SUBJECT,
    "title": _SUBJECT,
    "summary": _SUBJECT,
    "text": _TEXT,
    "message": _TEXT,
    "message_body": _TEXT,
    "body": _TEXT,
    "html_content": _HTML,
}


def notifier(feed: Feed, notify: Notify, environment: Mapping[str, str] | None = None) -> BaseNotifier:
    """Return a notifier. environment: the variables of its arguments; None leaves them as they are written.

    Raises ConfigError that names the feed's file: the class cannot be imported, is no notifier, or refuses the arguments.
    """
    where = f"{feed.folder / 'feed.toml'}: [[notify]] {notify.kind}"
    kind, arguments = _imported(notify, where), notify.arguments
    if environment is not None:
        arguments = expanded(arguments, environment, str(feed.folder / "feed.toml"), "notify.with")
    takes = list(inspect.signature(kind).parameters)
    message = {name: text for name, text in MESSAGE.items() if name in takes and name in kind.template_fields}
    try:
        return kind(**(message | arguments))
    except Exception as e:
        allowed = ", ".join(name for name in takes if name not in ("context", "kwargs", "args"))
        raise ConfigError(
            f"{where}: the class refuses the arguments under `with`: {e}", remedy=f"it takes {allowed}; see its provider's documentation"
        ) from e


def mistakes(feed: Feed) -> list[ConfigError]:
    """Return what is wrong with a feed's notifiers. Nothing is sent and no connection is used."""
    found = []
    for notify in feed.notify:
        try:
            notifier(feed, notify)
        except ConfigError as e:
            found.append(e)
    return found


def _imported(notify: Notify, where: str) -> type[BaseNotifier]:
    module, _, name = notify.kind.rpartition(".")
    try:
        kind = getattr(import_module(module), name)
    except Exception as e:
        raise ConfigError(
            f"{where}: the class cannot be imported: {e}",
            remedy="write its import path as `class`, and install its provider where Airflow parses DAGs and where tasks run",
        ) from e
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise ConfigError(f"{where} is not a notifier", remedy="write a subclass of airflow.sdk.BaseNotifier as `class`")
    return kind
