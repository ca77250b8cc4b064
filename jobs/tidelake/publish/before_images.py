"""Checks whether a window's changes fit the rows in the lake (before images), as part of the verdict (docs/architecture.md 8.4)."""

from __future__ import annotations

from tidelake.config.feed import Feed
from tidelake.errors import QualityError
from tidelake.lake.cut import ImageCounts
from tidelake.lake.folding.images import described
from tidelake.validate.quality.verdict import Check


def reconciled(feed: Feed, images: dict[str, ImageCounts]) -> list[Check]:
    """Return one check per table: whether its changes fit the rows in the lake.

    Raises:
        QualityError: BEFORE_IMAGES: they do not and the policy is to block.
    """
    blocks = feed.policy.on_before_image == "block"
    checks = [
        Check(
            table=name,
            rule="old values fit the snapshot",
            severity="critical" if blocks else "warning",
            success=not c.found,
            expected="every before image equals the row it replaces",
            observed=described(c),
            unexpected=c.found,
            examples=c.examples,
        )
        for name, c in sorted(images.items())
    ]
    failed = [c for c in checks if not c.success]
    if blocks and failed:
        first = failed[0]
        raise QualityError(
            f"{first.table}: {first.observed}; the first: {first.examples[0] if first.examples else '-'}; changes were lost before this "
            "window, or the snapshot is wrong; nothing of the window is published",
            code="BEFORE_IMAGES",
            remedy='find out what was lost; to publish anyway, with a warning, set [policy] on_before_image = "warn"',
        )
    return checks
