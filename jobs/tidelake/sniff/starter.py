"""A feed.toml to start from: the settings that the archive shows, and comments for those that it does not."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from tidelake.archives import TIMELESS, layout_of
from tidelake.config.feed import EXTENDED, UNDATED
from tidelake.config.options import SinkOptions
from tidelake.sniff.archive import Archive, Section
from tidelake.sniff.families.hint import OptionValue
from tidelake.tso import format_hour

_STANDARD = re.compile(
    r"\{topic\}/(dt=\{yyyy\}-\{MM\}-\{dd\}/hr=\{HH\}|year=\{yyyy\}/month=\{MM\}/day=\{dd\}/hour=\{HH\})"
    r"/\{topic\}([+-])\{partition\}\2\{start_offset\}(-\{any\})?"
)
_MARKED = frozenset({"open", "craft", "simple-json", "simple-avro"})  # protocols whose messages have the resolved ts with any options
_NO_DDL = frozenset({"avro", "csv"})
_ENDING = re.compile(r"(\.[A-Za-z]\w*)+$")
_SAFE = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Starter:
    """A feed to start from.

    Attributes:
        name: Name of the feed.
        text: Text of feed.toml.
        environment: Values for its variables.
        missing: What is needed besides.
    """

    name: str
    text: str
    environment: dict[str, str]
    missing: tuple[str, ...]


def template_of(section: Section) -> str | None:
    """Return source.template; None if the layout finds its objects without one. It ends in an extension that the layout does not know."""
    if ending := _foreign_ending(section):
        return section.template + ending
    usual = _STANDARD.fullmatch(section.template) or (not has_hours(section) and section.template in TIMELESS)
    if usual and not layout_of(section.layout or "").templates:
        return None
    return None if section.template in layout_of(section.layout or "").templates else section.template


def _foreign_ending(section: Section) -> str:
    """Extensions up to the last one that the layout does not know; empty if it knows all."""
    first = section.entries[0]
    foreign = [word for word in first.said.extensions if word not in layout_of(section.layout or "").extensions]
    if not foreign:
        return ""
    name = first.key.rpartition("/")[2]
    at = name.lower().rindex(f".{foreign[-1]}") + len(foreign[-1]) + 1
    return (_ENDING.search(name[:at]) or [""])[0]


def has_hours(section: Section) -> bool:
    """Whether the objects' paths have hours."""
    return any(topic.hours for topic in section.topics)


def starter(
    section: Section, archive: Archive, avro_schemas: str | None = None, taken: Collection[str] = (), *, shared: bool = False
) -> Starter:
    """Return the feed.toml for a section with a layout and a protocol. TIDELAKE_ARCHIVE is the sniffed URI if the section is below it.

    Args:
        section: The section.
        archive: The archive.
        avro_schemas: Location of the Avro schemas, if given.
        taken: Names of other feeds.
        shared: Another feed has the same database, so each needs its own namespace.
    """
    uri = archive.uri
    root = uri if section.base == uri or section.base.startswith(f"{uri}/") else section.base
    beside = {
        name: f"${{TIDELAKE_ARCHIVE}}/{key}" for name, key in (("schemas", archive.schemas), ("checkpoints", archive.checkpoints)) if key
    }
    if root != uri:
        beside = {}
    schemas = avro_schemas or beside.get("schemas")
    environment = {"TIDELAKE_ARCHIVE": root, "TIDELAKE_LAKE": "s3://…", "TIDELAKE_CATALOG": "jdbc:postgresql://…"}
    if _watermark(section) == "checkpoints" and "checkpoints" not in beside:
        environment["TIDELAKE_CHECKPOINTS"] = "s3://…/checkpoints.json"
    if _claim_check(section):
        environment["TIDELAKE_CLAIMS"] = "s3://…"
    rest = _rest(section, schemas, beside.get("checkpoints"), shared)
    text = "\n".join([*_head(section), *_options(section), *_source(section, root), *rest]) + "\n"
    name = feed_name(section)
    numbered = (name if i == 1 else f"{name}-{i}" for i in count(1))
    return Starter(
        next(n for n in numbered if n not in taken), text, environment, tuple(_missing(section, schemas, beside.get("checkpoints")))
    )


def feed_name(section: Section) -> str:
    """Return a name for the feed's folder, from its topics."""
    names = [t.name for t in section.topics]
    common = names[0] if len(names) == 1 else _common(names)
    safe = _SAFE.sub("-", common.lower()).strip("-_")
    return safe if safe[:1].isalpha() else f"feed-{safe}".strip("-")


def _common(names: list[str]) -> str:
    """Common prefix of all names, up to a separator."""
    size = next((i for i, several in enumerate(zip(*names, strict=False)) if len(set(several)) > 1), min(map(len, names)))
    return names[0][:size].rpartition("_")[0] or names[0][:size].rpartition(".")[0] or names[0][:size]


def _head(section: Section) -> Iterator[str]:
    guess = section.verdict.guesses[0]
    counts = {t.name: max(t.partitions) + 1 for t in section.topics}
    decoded = f"{guess.decoded:,} of {section.verdict.messages:,} sampled messages decode"
    yield f"# {guess.protocol} is {guess.confidence}: {decoded}."
    yield f"protocol = {_toml(guess.protocol)}"
    names = [_toml(name) for name in counts]
    late = _late(section)
    if late and _is_first_folder(section):
        yield "# A pattern, so that each topic is expected from its first hour on and not before."
        pattern = "|".join(map(re.escape, counts))
        yield f"topics = [{_toml(f'/{pattern}/')}]"
    else:
        yield f"topics = [{', '.join(names)}]" if len(names) <= 3 else "topics = [\n" + "".join(f"  {name},\n" for name in names) + "]"
        yield from (f"# {name} has no object before hour {format_hour(hour)}: leave it out until then." for name, hour in late.items())
    if len(names) > 1 and (common := _common(list(counts))) and len(set(counts.values())) == 1:
        yield f"# For future topics: topics = [{_toml(f'/{common}.*/')}]"
    yield "# Number of partitions with objects. Check it with kafka-topics.sh --describe: a wrong number blocks."
    if len(set(counts.values())) == 1:
        yield f"partitions = {next(iter(counts.values()))}"
    else:
        yield f"partitions = {{ {', '.join(f'{_toml(name)} = {count}' for name, count in counts.items())} }}"
    yield "# Not in the messages: the changefeed's time zone, in which TIMESTAMP columns are written."
    yield 'time_zone = "UTC"'


def _late(section: Section) -> dict[str, datetime]:
    """Topics that begin after the section's first hour, if every topic must have messages in every hour."""
    begins = {topic.name: min(topic.hours) for topic in section.topics if topic.hours}
    if _watermark(section) != "messages" or not begins:
        return {}
    return {name: hour for name, hour in begins.items() if hour > min(begins.values())}


def _is_first_folder(section: Section) -> bool:
    """Whether topics can be found by a pattern: each is a folder, and nothing before it varies."""
    return section.template.startswith("{topic}/")


def _options(section: Section) -> Iterator[str]:
    options = section.verdict.guesses[0].options
    if options:
        yield from ("", "# Sink options that the messages show; all others have TiCDC's default.", "[options]")
        yield from (f"{name} = {_toml(value)}" for name, value in options.items())


def _source(section: Section, root: str) -> Iterator[str]:
    yield from (
        "",
        "[source]",
        f"uri = {_toml('${TIDELAKE_ARCHIVE}' + section.base.removeprefix(root))}",
        f"layout = {_toml(section.layout or '')}",
    )
    if (template := template_of(section)) is not None:
        yield f"template = {_toml(template)}"
    if has_hours(section):
        yield f"first_hour = {_toml(format_hour(min(h for t in section.topics for h in t.hours)))}  # the feed starts here: docs/cuts.md"
    else:
        yield 'hours = "timestamps"  # no path has an hour: docs/layouts.md'
    if section.tags:
        yield "tags = true  # the objects have tags: those that do not prove their offsets are refused"
    if _claim_check(section):
        yield 'claim_check = "${TIDELAKE_CLAIMS}"  # where the changefeed\'s claim-check files are now'


def _rest(section: Section, avro_schemas: str | None, checkpoints: str | None, shared: bool) -> Iterator[str]:
    guess = section.verdict.guesses[0]
    yield from ("", "[watermark]")
    if _watermark(section) == "messages":
        yield 'from = "messages"'
    elif _watermark(section) == "offsets":
        yield "# The rows carry no commit ts: offsets order them, and the closed hour is the cut. What that cannot guarantee (repeats, two"
        yield "# partitions, statements): docs/offsets.md. With TiCDC, enable-tidb-extension in the changefeed gives stronger guarantees."
        yield 'from = "offsets"'
        yield 'one_partition_per = "table"  # "key" where rows are spread by their primary key (canal.mq.partitionHash …:$pk$)'
    else:
        yield "# The messages carry no resolved ts: the changefeed's checkpoints must be recorded."
        yield from ('from = "checkpoints"', f"uri = {_toml(checkpoints or '${TIDELAKE_CHECKPOINTS}')}")
    if guess.protocol == "avro":
        ids = ", ".join(map(str, guess.schema_ids[:10])) + (", …" if len(guess.schema_ids) > 10 else "")
        yield from ("", "[avro]", f"schemas = {_toml(avro_schemas or 'avro_schemas.json')}  # must hold {ids or 'none yet'}")
    yield from ("", "[lake]", 'uri = "${TIDELAKE_LAKE}"', 'catalog = "${TIDELAKE_CATALOG}"')
    if shared:
        yield 'namespace = "{feed}_{database}"  # another feed of this archive carries the same database'
    else:
        yield '# Where several feeds carry the same database: namespace = "{feed}_{database}"'


def _missing(section: Section, avro_schemas: str | None, checkpoints: str | None) -> Iterator[str]:
    guess = section.verdict.guesses[0]
    held = section.contents
    later = _later(section)
    tables = [table for table in held.rows if table not in held.created and table not in later]
    yield f"tables.sql: the CREATE TABLE statements as of the first hour{_some(tables)}"
    if held.created:
        yield f"(not in tables.sql, as the messages hold their CREATE TABLE{_some(sorted(held.created))})"
    if guess.protocol in _NO_DDL:
        yield f"ddl.jsonl: {guess.protocol} carries no DDL, so statements that come later must be recorded"
    if later:
        yield f"(in ddl.jsonl if they were created after the first hour, else in tables.sql: tables without an object in it{_some(later)})"
    if guess.protocol == "avro" and not avro_schemas:
        yield f"avro_schemas.json: the schemas of {len(guess.schema_ids)} ids, or the registry's URL"
    if _watermark(section) == "checkpoints":
        if not checkpoints:
            yield "checkpoints.json: the changefeed's checkpoints as they were recorded, the only resolved ts available"
    elif _watermark(section) == "messages" and not section.contents.resolved:
        yield "a resolved ts: the messages that were read contain none, and hours are complete only up to one"
    if _claim_check(section):
        yield "the changefeed's claim-check files (claim-check-storage-uri)"


def _later(section: Section) -> list[str]:
    """Tables of protocols without DDL whose topics begin after the section's first hour."""
    begins = {topic.name: min(topic.hours) for topic in section.topics if topic.hours}
    if section.verdict.guesses[0].protocol not in _NO_DDL or not begins:
        return []
    first = min(begins.values())
    return [table for table, topics in section.contents.topics.items() if all(begins.get(name, first) > first for name in topics)]


def _some(tables: Sequence[str]) -> str:
    """Format `: a, b and 3 more`; empty for none."""
    return f": {', '.join(tables[:8])}{f' and {len(tables) - 8} more' if len(tables) > 8 else ''}" if tables else ""


def _watermark(section: Section) -> str:
    guess = section.verdict.guesses[0]
    options = SinkOptions.model_validate(dict(guess.options))
    marked = guess.protocol in _MARKED or (guess.protocol in EXTENDED and options.enable_tidb_extension) or options.avro_enable_watermark
    undated = guess.protocol in UNDATED or guess.protocol in EXTENDED
    return "messages" if marked else "offsets" if undated else "checkpoints"


def _claim_check(section: Section) -> bool:
    options: Mapping[str, OptionValue] = section.verdict.guesses[0].options
    return options.get("large_message_handle_option") == "claim-check"


def _toml(value: OptionValue) -> str:
    return str(value).lower() if isinstance(value, bool) else json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
