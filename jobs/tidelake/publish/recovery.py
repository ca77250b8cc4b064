"""Recovery: carries out an interrupted publication again; completes the undo of an abandoned one."""

from __future__ import annotations

import logging

from tidelake.config.lake_paths import certificate_key, cut_key, intent_key
from tidelake.errors import ConfigError
from tidelake.io.documents import read_document
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Abandoned, Cut, Intent
from tidelake.lake.cut_documents import find_outcome, keep, newest_intent, read_cut
from tidelake.lake.cuts import is_published

log = logging.getLogger(__name__)


def recover(catalog: LakeCatalog, store: Store, feed: str) -> Cut | None:
    """Finish what the newest intent began. Return the cut that it published, None if there was nothing to publish.

    A lost document of a published cut is written again.

    Raises:
        ConfigError: WRONG_CATALOG.
        DamageError: A document is damaged.
        StorageError: What `carry_out` raises.
    """
    seq = newest_intent(store, feed)
    if not seq:
        return None
    published, proven = is_published(catalog, feed, seq), store.head(certificate_key(feed, seq)) is not None
    if published and proven:
        if store.head(cut_key(feed, seq)) is None:
            log.info(f"writing the document of cut {seq} again, which is missing")
            keep(store, read_cut(store, feed, seq))
        return None
    if proven:
        raise ConfigError(
            f"cut {seq} of feed {feed} is missing from the catalog, but its certificate records that it was published",
            code="WRONG_CATALOG",
            remedy="is the catalog an older copy? Restore the newest one",
        )

    from tidelake.publish.abandon import finish  # what publishes is not imported where nothing is to be published
    from tidelake.publish.steps import carry_out

    outcome = find_outcome(store, feed, seq)
    intent = read_document(store, intent_key(feed, seq), Intent)
    if isinstance(outcome, Abandoned):
        if not outcome.undone:
            finish(catalog, store, intent, outcome)
        return None
    log.info(f"rolling forward the publishing of cut {seq} (hour {intent.cut.hour})")
    return carry_out(catalog, store, intent)
