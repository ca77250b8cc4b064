"""The task `notify`: looks at the lake for causes that people should hear of, and sends the notices that follow with the feeds' notifiers.

It has a DAG of its own and reads nothing but the lake, so it also runs while runs of the feeds wait, fail or are missing, and cannot hold
up a stage. What was told is remembered in the lake (tidelake.notices). Child processes read and write it; Airflow's process sends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from airflow.sdk import BaseOperator, Context, conf
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.log import mask_secret

from tidelake.airflow.connections import given_to_notifiers
from tidelake.airflow.notify_classes import notifier
from tidelake.airflow.stage import QUALITY_PREFIX, child_environment, error_in, failure
from tidelake.config.feed import Feed, load_feed
from tidelake.config.notify import Notify
from tidelake.errors import ConfigError
from tidelake.io.printable import printable
from tidelake.notices.cause import Notice
from tidelake.notices.words import Words, test_words, words


class NotifyOperator(BaseOperator):
    """Looks at feeds and sends what is to be told of them. A feed or a notifier that fails does not keep the others from being served; the
    task then fails at its end, and the next run tries again. schemas: folder of the feeds.
    """

    command: ClassVar[Sequence[str]] = (sys.executable, "-P", "-m", "tidelake.notices")

    def __init__(self, *, feeds: Sequence[str], schemas: str, **kwargs: Any) -> None:
        super().__init__(task_id="notify", **kwargs)
        self.feeds = list(feeds)
        self.schemas = schemas

    def execute(self, context: Context) -> None:
        """Look, send, and record what was delivered. With the parameter `test`, send a test message to everyone instead.

        Raises AirflowFailException if something was not delivered.
        """
        feeds, environment, failed = self._loaded()
        if context["params"].get("test"):
            for feed in feeds.values():
                for notify in feed.notify:
                    self._send(feed, notify, test_words(feed.name), context, failed)
        elif feeds:
            looked = json.loads(self._child(["look", self.schemas, *feeds], environment))
            for name, feed in feeds.items():
                if error := looked[name]["error"]:
                    failed.append(f"{name}: {printable(error)}")
                notices = looked[name]["notices"]
                delivered = [n for notify in feed.notify for n in self._sent(feed, notify, notices.get(notify.key, []), context, failed)]
                if delivered:
                    self._child(["delivered", self.schemas, name, *map(str, delivered)], environment)
        if failed:
            raise AirflowFailException("\n".join([*failed, "the next run tries again"]))

    def _loaded(self) -> tuple[dict[str, Feed], dict[str, str], list[str]]:
        """Return (the feeds by name, the environment of children, what is wrong with the others)."""
        feeds, environment, failed = dict[str, Feed](), dict[str, str](), list[str]()
        for name in self.feeds:
            try:
                environment |= child_environment(Path(self.schemas), name)
                feeds[name] = load_feed(Path(self.schemas), name, expand=False)
            except ConfigError as e:
                failed.append(str(e))
        return feeds, environment, failed

    def _sent(self, feed: Feed, notify: Notify, notices: Sequence[Mapping[str, Any]], context: Context, failed: list[str]) -> list[int]:
        """Send notices with one notifier, oldest first, up to the first that fails. Return the numbers of those that were delivered."""
        delivered = list[int]()
        for notice in map(Notice.model_validate, notices):
            if not self._send(feed, notify, words(notice, feed.name, _pages(feed.name)), context, failed):
                break
            delivered.append(notice.number)
        return delivered

    def _send(self, feed: Feed, notify: Notify, said: Words, context: Context, failed: list[str]) -> bool:
        """Send a message. Return whether it was delivered; if not, say so in the log and in `failed`."""
        try:
            self._notifier(feed, notify)({**context, "notice": said})
        except Exception as e:  # noqa: BLE001 - a notifier may raise anything
            failed.append(f"{feed.name}: {notify.kind} did not deliver {said.subject!r}: {printable(str(e) or type(e).__name__)}")
            self.log.error("%s", failed[-1])
            return False
        self.log.info("%s: told by %s", said.subject, notify.kind)
        return True

    def _notifier(self, feed: Feed, notify: Notify) -> Any:
        """Return a new notifier, because one renders its templates only once. Values of variables are masked in logs."""
        given = given_to_notifiers(feed)
        for value in given.values():
            mask_secret(value)
        return notifier(feed, notify, {**os.environ, **given})

    def _child(self, arguments: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run a child and return what it prints. Raises by its exit code."""
        done = subprocess.run(
            [*self.command, *arguments], env=dict(environment), capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode:
            lines = done.stderr.splitlines()
            raise failure(f"notices {arguments[0]}", done.returncode, error_in(lines) or printable(lines[-1] if lines else ""))
        return done.stdout


def _pages(feed: str) -> str:
    """Return the URL of the quality reports of a feed, "" if Airflow does not know its own URL."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}{QUALITY_PREFIX}/{feed}" if base else ""
