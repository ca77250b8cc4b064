"""Consoles of the commands. They escape everything that is printed on them (tidelake.io.printable)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from tidelake.io.printable import printable, printable_lines


class Terminal(Console):
    """Console that prints text as it is: no markup, no colours by content, no control characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**(options | {"emoji": False, "markup": False, "highlight": False}))

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a line, a title or a cell as one line of printable characters."""
        return super().render_str(printable(text), **(options | {"markup": False, "emoji": False}))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render other objects of rich, such as the task of a progress bar, as printable characters."""
        return _escaped(super().render(renderable, options))

    def lines(self, text: str, **options: Any) -> None:
        """Print a text of several lines; all but the first are indented."""
        self.print(Text(printable_lines(text)), soft_wrap=True, **options)


def _escaped(segments: Iterable[Segment]) -> Iterator[Segment]:
    for segment in segments:
        plain = segment.control is not None or segment.text.isprintable()
        yield segment if plain else Segment("\n".join(map(printable, segment.text.split("\n"))), segment.style)
