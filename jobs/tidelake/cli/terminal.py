"""The consoles that commands print on. Whatever is printed on them, by whatever part of rich, is escaped here: tidelake.io.printable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from tidelake.io.printable import printable, printable_lines


class Terminal(Console):
    """A console on which texts are only texts: no markup, no colours by content, nothing that does not print."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**(options | {"emoji": False, "markup": False, "highlight": False}))

    def render_str(self, text: str, **options: Any) -> Text:
        """A line, a title or a cell: one line of characters that print."""
        return super().render_str(printable(text), **(options | {"markup": False, "emoji": False}))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What else rich prints: a task of a progress bar, a status."""
        return _escaped(super().render(renderable, options))

    def lines(self, text: str, **options: Any) -> None:
        """Print a text of several lines, as it may be in an error: all but the first are indented."""
        self.print(Text(printable_lines(text)), soft_wrap=True, **options)


def _escaped(segments: Iterable[Segment]) -> Iterator[Segment]:
    for segment in segments:
        plain = segment.control is not None or segment.text.isprintable()
        yield segment if plain else Segment("\n".join(map(printable, segment.text.split("\n"))), segment.style)
