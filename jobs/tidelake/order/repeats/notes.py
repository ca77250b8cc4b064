"""What a certificate says of changes that came again, and of names that went back without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidelake.errors import Coordinates, TopicPartition
from tidelake.history.source_names import batch_number, is_batch, shown
from tidelake.io.texts import plural
from tidelake.order.repeats.copies import FoundCopies
from tidelake.order.repeats.names_seen import Suspect
from tidelake.order.repeats.statements import StatementPlace

DOCS = "docs/offsets.md"


def notes(
    found: Mapping[TopicPartition, Sequence[Suspect]], rows: Mapping[TopicPartition, FoundCopies], statements: frozenset[StatementPlace]
) -> Iterator[dict[str, str]]:
    """Yield findings: the fields of validate.quality.facts.FindingFacts.

    Args:
        found: The runs that may hold repeats.
        rows: What came of them.
        statements: The repeated statements.
    """
    places = sorted({*found, *rows, *((topic, partition) for _, topic, partition, *_ in statements)})
    for at in places:
        mine, told = rows.get(at, FoundCopies()), [o for _, t, p, o, _ in statements if (t, p) == at]
        if mine.rows or told:
            yield _sent_again(at, mine, told)
        started = [s for s in found.get(at, ()) if is_batch(s.run.low)]
        if started:
            yield _started_again(at, started)
        back = [s for s in found.get(at, ()) if not s.low and not is_batch(s.run.low)]
        if mine.kept or back:
            yield _went_back(at, mine, found.get(at, ()), back)


def _sent_again(at: TopicPartition, rows: FoundCopies, statements: Sequence[int]) -> dict[str, str]:
    first = min([o for o in (rows.first, *statements) if o is not None])
    many = " and ".join(plural(n, what) for n, what in ((rows.rows, "row event"), (len(statements), "statement")) if n)
    return {
        "code": "SENT_AGAIN",
        "severity": "info",
        "where": str(Coordinates(*at, first)),
        "detail": f"{many} had come before at lower offsets with the same place in the binlog and the same content; they count once",
        "remedy": "nothing: a producer that was started again repeats its last changes",
    }


def _went_back(at: TopicPartition, rows: FoundCopies, found: Sequence[Suspect], back: Sequence[Suspect]) -> dict[str, str]:
    """The finding for names that went back, and events that are no copies. back: runs whose names no earlier event can have had."""
    kept = rows.kept + sum(s.run.rows for s in back)
    first = min(o for o in (rows.first_kept, *(s.run.first for s in back)) if o is not None)
    run = next(s for s in found if s.run.first <= first <= s.run.last)
    before = f" after {shown(run.before)}" if run.before is not None else ""
    return {
        "code": "BINLOG_WENT_BACK",
        "severity": "warning",
        "where": str(Coordinates(*at, first)),
        "detail": f"the changes from {shown(run.run.low)} on come{before}, and {plural(kept, 'row event')} of them "
        f"{'is' if kept == 1 else 'are'} not among the earlier events that are kept: counted as new",
        "remedy": "nothing, if the source was replaced, its binlog was reset, or the producer's filter changed. If the producer was set "
        f"back to before the events that are kept, its repeats count twice: {DOCS}, Repeats",
    }


def _started_again(at: TopicPartition, found: Sequence[Suspect]) -> dict[str, str]:
    """The finding for numbers of batches that fell."""
    run, before = found[0].run, found[0].before
    fell = "again and again" if run.mixed or before is None else f"from {batch_number(before)} to {batch_number(run.low)}"
    more = f", and {plural(len(found) - 1, 'time')} more after that" if len(found) > 1 else ""
    return {
        "code": "CANAL_STARTED_AGAIN",
        "severity": "warning",
        "where": str(Coordinates(*at, run.first)),
        "detail": f"the number of the batch (`id`) fell {fell}{more}: Canal was started again, and may have sent its last changes once "
        "more. Flat messages do not say which: they count as new",
        "remedy": "compare tables without a key by `tidelake verify`; the others are right where the repeat ends. With "
        f"canal.mq.flatMessage = false and protocol = canal, repeats count once: {DOCS}, Repeats",
    }
