"""Styles and scripts that a page holds, and the Content-Security-Policy that allows them and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from markupsafe import Markup

REPORT_STYLE = ("tidelake.validate.quality", "page/page.css")


@cache
def inline(package: str, name: str) -> Markup:
    """Return a style or script of a package, as a page holds it."""
    return Markup(files(package).joinpath(name).read_text(encoding="utf-8"))


def content_security_policy(styles: Sequence[Markup], scripts: Sequence[Markup] = ()) -> str:
    """Return the policy of a page: no resource is loaded, and only these styles and scripts count."""
    allowed = [
        f"{kind} {' '.join(_hash(text) for text in texts)}" for kind, texts in (("style-src", styles), ("script-src", scripts)) if texts
    ]
    return "; ".join(["default-src 'none'", *allowed])


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
