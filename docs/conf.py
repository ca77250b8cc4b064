"""Sphinx builds the site from docs/ (`make docs`). Decision and alternatives: docs/decisions.md."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parent.parent

project = "Tidelake"
author = "The Tidelake authors"
copyright = "The Tidelake authors, Apache License 2.0"  # Sphinx's name
release = version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["Thumbs.db"]
myst_heading_anchors = 4  # anchors as GitHub makes them, so that links hold in both places
nitpicky = True
smartquotes = False
suppress_warnings = ["misc.highlighting_failure"]  # JSON fences that hold several lines of JSON

html_theme = "furo"
html_title = "Tidelake"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}

# Pages of the repository's root that the site includes: links to them lead to the page of the site.
_INCLUDED = {"README": "index", "CONTRIBUTING": "project/contributing", "CHANGELOG": "project/changelog", "SECURITY": "project/security"}
_LINK = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<page>" + "|".join(_INCLUDED) + r")\.md(?P<anchor>#[\w-]*)?\)")


def _to_the_site(app: Any, docname: str, source: list[str]) -> None:
    """Point links to pages of the repository's root at the pages of the site that include them."""
    depth = docname.count("/")

    def inside(found: re.Match[str]) -> str:
        if found["up"].count("../") != depth + 1:
            return found[0]
        return f"]({'../' * depth}{_INCLUDED[found['page']]}.md{found['anchor'] or ''})"

    source[0] = _LINK.sub(inside, source[0])


def setup(app: Any) -> None:
    """Register the rewriting of links."""
    app.connect("source-read", _to_the_site)
