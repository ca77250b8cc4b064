"""Templates of pages. They escape everything and replace unprintable characters, because texts come from the data."""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from tidelake.io import texts
from tidelake.validate.quality.evidence import place

_FILTERS = "clipped clock duration hour_name instant iso lag moment plural prose signed size".split()  # of tidelake.io.texts


@cache
def environment(*packages: str) -> Environment:
    """Return the environment of the report's templates and of those in the folder `page` of other packages."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package, "page") for package in ("tidelake.validate.quality", *packages)]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=texts.printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: getattr(texts, name) for name in _FILTERS}
    made.filters["place"] = place
    return made
