"""A deep audit decodes landed messages again and folds buckets with the specification; both find what the sums cannot."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tidelake.audit.audit import audit
from tidelake.audit.decoded import check_decoded
from tidelake.audit.findings import Findings
from tidelake.audit.inputs import Manifests, check_inputs
from tidelake.audit.proofs import Chain, StoredCertificate, read_chain
from tidelake.audit.sampled_rows import check_sample
from tidelake.config.feed import Feed, load_feed
from tidelake.demo.generate import generate
from tidelake.io.storage import Store, open_store
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Manifest
from tidelake.run import run_hour

NAME = "bazaar-open"


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    """Two hours of the demo and the one that closes them, run without Spark: there are no rules to judge."""
    folder = tmp_path_factory.mktemp("deep")
    workload = generate(open_store(f"{folder}/archive"), hours=2, rows_per_hour=20)
    shutil.copytree(CHECKOUT / "schemas" / NAME, folder / "schemas" / NAME, ignore=shutil.ignore_patterns("expectations"))
    (folder / "lake").mkdir()
    places = {"TIDELAKE_ARCHIVE": f"{folder}/archive", "TIDELAKE_LAKE": f"{folder}/lake"}
    loaded = load_feed(folder / "schemas", NAME, places | {"TIDELAKE_CATALOG": f"jdbc:sqlite:{folder}/catalog.db"})
    with Lake.of(loaded) as lake:
        for hour in workload.hours:
            run_hour(lake, hour)
    return loaded


@pytest.fixture
def store(feed: Feed) -> Store:
    return open_store(feed.lake.uri)


@pytest.fixture
def chain(store: Store) -> Chain:
    return read_chain(store, NAME, 1, Findings())


@pytest.fixture
def manifests(store: Store, feed: Feed, chain: Chain) -> Manifests:
    return check_inputs(store, chain, Findings(), None)


def with_predicate(chain: Chain, seq: int, **members: Any) -> Chain:
    """The chain with other members in one certificate."""
    proof = chain.audited[seq]
    assert proof.certificate is not None
    said = proof.certificate.model_copy(update={"predicate": proof.says.model_copy(update=members)})
    return replace(chain, audited=chain.audited | {seq: replace(proof, certificate=said)})


def decoded(feed: Feed, chain: Chain, manifests: Manifests, sample: dict[int, set[Any]] | None = None) -> Findings:
    findings = Findings()
    check_decoded(feed, chain, manifests, sample or {}, findings, None)
    return findings


def test_a_whole_lake_is_decoded_and_folded_again(feed: Feed, chain: Chain) -> None:
    found = audit(feed.name, feed.lake.uri, deep=feed)
    assert found.wrong == []
    assert found.checked["decoded events"] >= sum(p.says.events.get("row", 0) for p in chain.readable) > 40
    assert found.checked["folded buckets"] >= 3


def test_another_number_of_events_is_found(feed: Feed, chain: Chain, manifests: Manifests) -> None:
    events = chain.audited[1].says.events
    forged = with_predicate(chain, 1, events=events | {"row": events["row"] + 1})
    (wrong,) = decoded(feed, forged, manifests).wrong
    assert (wrong.cut, wrong.what) == (1, f"its messages have {events['row']} of kind row, expected {events['row'] + 1}")


def test_messages_that_do_not_make_the_changes_are_found(feed: Feed, store: Store, chain: Chain, manifests: Manifests) -> None:
    retained: list[StoredCertificate] = chain.readable
    sample = check_sample(store, chain, retained, {}, Findings())
    cut = next(seq for seq, places in sorted(sample.items()) if places)
    topic, partition, *_ = next(iter(sample[cut]))

    class Fewer(Manifests):
        """Without the objects of that partition."""

        def read(self, proofs: Iterable[StoredCertificate]) -> Iterator[tuple[StoredCertificate, list[Manifest]]]:
            for proof, mine in super().read(proofs):
                kept = ([o for o in m.objects if (o.topic, o.partition) != (topic, partition)] for m in mine)
                yield proof, [m.model_copy(update={"objects": tuple(objects)}) for m, objects in zip(mine, kept, strict=True)]

    fewer = Fewer(store, Findings())
    said = [w.what for w in decoded(feed, chain, fewer, sample).wrong if w.cut == cut]
    lost = sum((t, p) == (topic, partition) for t, p, *_ in sample[cut])
    assert said[-1].startswith(f"{lost} changes of its changelogs come from no landed message, the first [('{topic}', ")
    assert decoded(feed, chain, manifests, sample).wrong == []


def test_another_number_under_other_definitions_is_not_called_wrong(feed: Feed, chain: Chain, manifests: Manifests) -> None:
    events = chain.audited[1].says.events
    definitions = chain.audited[1].says.definitions.model_copy(update={"files": {}})
    found = decoded(feed, with_predicate(chain, 1, events=events | {"row": 0}, definitions=definitions), manifests)
    assert found.wrong == []
    assert [(u.what, u.why.split(",")[0]) for u in found.unchecked] == [("events of cut 1", "the feed's files or Tidelake changed since")]


def test_a_snapshot_with_rows_of_another_cut_is_found(store: Store, chain: Chain) -> None:
    """The rows of every table at cut 1 stand for those at cut 2, which has more."""
    one, two = chain.audited[1], chain.audited[2]
    assert two.certificate is not None
    earlier = {s.annotations.incarnation: s for s in one.subjects if s.annotations.kind == "snapshot"}
    subjects = tuple(
        s
        if s.annotations.kind == "changelog" or s.annotations.incarnation not in earlier
        else s.model_copy(update={"annotations": earlier[s.annotations.incarnation].annotations})
        for s in two.certificate.subject
    )
    forged = replace(two, certificate=two.certificate.model_copy(update={"subject": subjects}))
    findings = Findings()
    check_sample(store, replace(chain, audited=chain.audited | {2: forged}), [one, forged], {}, findings)
    assert {w.cut for w in findings.wrong} == {2}
    assert all("keys differ from the fold of the changes onto cut 1, the first [(" in w.what for w in findings.wrong)


def test_a_table_without_a_list_at_the_cut_before_is_not_folded(store: Store, chain: Chain) -> None:
    """Its rows of then are not known. Folded onto nothing, they would all seem to be missing."""
    one, two = chain.audited[1], chain.audited[2]
    assert one.certificate is not None
    bare = replace(one, certificate=one.certificate.model_copy(update={"subject": ()}))
    findings = Findings()
    sample = check_sample(store, replace(chain, audited=chain.audited | {1: bare}), [bare, two], {}, findings)
    assert (findings.wrong, set(sample)) == ([], set())
