"""Who hears of what: a cause once, its end once, whatever lies between two looks."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidelake.config.notify import Notify
from tidelake.notices.cause import Cause, Standing
from tidelake.notices.heard import LakeState, Memory, after, delivered

EVERY = ["blocked", "incomplete", "warning", "lag", "recovered"]


def cause(event: Any, code: str, hour: str = "10", ends: str = "") -> Cause:
    same = f"{event} {code} {hour}"
    return Cause(event=event, code=code, hour=hour, id=same, ends=ends or same, why="it was found", todo="mend it")


GAP, UNDECIDED = cause("blocked", "GAP"), cause("blocked", "UNDECIDED")
LAG = cause("lag", "LAG")


def notifier(*on: str, **arguments: Any) -> Notify:
    limit = {"lag_minutes": 120} if "lag" in (on or EVERY) else {}
    return Notify.model_validate({"class": "a.B", "on": list(on or EVERY), "with": arguments} | limit)


def found(*lasts: Cause, cut: int = 1, passed: tuple[Cause, ...] = (), minutes: float = 0) -> LakeState:
    return LakeState(standing=Standing(cut=cut, hour="10", resolved_ts=1), open=list(lasts), passed=list(passed), lag_minutes=minutes)


class Told:
    """One or several notifiers, and what each look at the lake has them told."""

    def __init__(self, *notifiers: Notify) -> None:
        self.notifiers, self.memory = list(notifiers or [notifier()]), Memory()

    def __call__(self, *lasts: Cause, **more: Any) -> list[str]:
        """What the first notifier is told after a look; everything is delivered."""
        self.memory = after(self.memory, found(*lasts, **more), self.notifiers, LAG)
        waiting = self.waiting(0)
        self.memory = delivered(self.memory, [n.number for h in self.memory.notifiers.values() for n in h.waiting])
        return waiting

    def waiting(self, number: int) -> list[str]:
        return [f"{n.event} {n.cause.code} {n.cause.hour}" for n in self.memory.notifiers[self.notifiers[number].key].waiting]


def test_a_cause_is_told_once_while_it_lasts_and_its_end_once() -> None:
    told = Told()
    assert told(GAP) == ["blocked GAP 10"]
    assert [told(GAP, cut=1) for _ in range(5)] == [[]] * 5
    assert told(cut=2) == ["recovered GAP 10"]
    assert told(cut=3) == []
    assert told(GAP) == ["blocked GAP 10"]


def test_another_cause_at_the_same_hour_is_told_after_the_end_of_the_first() -> None:
    told = Told()
    told(GAP)
    assert told(UNDECIDED) == ["recovered GAP 10", "blocked UNDECIDED 10"]


def test_what_lies_between_two_looks_is_told_with_its_end() -> None:
    told = Told()
    told()
    short = cause("warning", "LATE_FILE", "11")
    assert told(cut=9, passed=(short, short)) == ["warning LATE_FILE 11", "recovered LATE_FILE 11"]


def test_a_loss_of_each_hour_is_told_and_one_recovery_ends_them() -> None:
    told = Told()
    first, second = (cause("incomplete", "ACCEPTED_LOSS", hour, ends="loss") for hour in ("10", "14"))
    assert told(first) == ["incomplete ACCEPTED_LOSS 10"]
    assert told(second, first, cut=5) == ["incomplete ACCEPTED_LOSS 14"]
    assert told(first, cut=6) == []  # a later cut names the first hour alone
    assert told(cut=7) == ["recovered ACCEPTED_LOSS 14"]


def test_a_loss_between_two_looks_ends_with_the_one_before_in_one_recovery() -> None:
    told = Told()
    first, second = (cause("incomplete", "ACCEPTED_LOSS", hour, ends="loss") for hour in ("10", "14"))
    told(first)
    assert told(cut=7, passed=(second, first)) == ["incomplete ACCEPTED_LOSS 14", "recovered ACCEPTED_LOSS 14"]


def test_a_notifier_hears_only_of_its_events() -> None:
    told = Told(notifier("incomplete"), notifier("blocked", to="another"))
    assert told(GAP) == []
    assert told(cause("incomplete", "LATE_ROWS")) == ["incomplete LATE_ROWS 10"]
    assert told() == []  # not of ends


def test_lag_is_told_when_the_limit_is_passed_and_when_it_is_kept_again() -> None:
    told = Told()
    assert told(minutes=119) == []
    assert told(minutes=121) == ["lag LAG 10"]
    assert told(minutes=600) == []
    assert told(minutes=61) == ["recovered LAG 10"]


def test_a_new_notifier_hears_of_what_lasts_and_of_nothing_before() -> None:
    told = Told()
    told(GAP)
    told.notifiers.insert(0, notifier(to="new"))
    assert told(GAP, passed=(cause("warning", "LATE_FILE"),)) == ["blocked GAP 10"]


def test_a_notifier_that_is_removed_is_forgotten() -> None:
    told = Told()
    told(GAP)
    del told.notifiers[0]
    told.notifiers.append(notifier("blocked"))
    told.notifiers[0] = notifier("blocked", to="someone else")
    told(GAP)
    assert list(told.memory.notifiers) == [told.notifiers[0].key]


def test_what_is_not_delivered_waits_in_order_and_is_not_written_twice() -> None:
    told = Told()
    for look in (found(GAP), found(GAP), found(UNDECIDED), found(UNDECIDED)):
        told.memory = after(told.memory, look, told.notifiers, LAG)
    assert told.waiting(0) == ["blocked GAP 10", "recovered GAP 10", "blocked UNDECIDED 10"]
    told.memory = delivered(told.memory, [1])
    assert told.waiting(0) == ["recovered GAP 10", "blocked UNDECIDED 10"]


def test_numbers_of_notices_are_never_used_again() -> None:
    told = Told(notifier(), notifier(to="another"))
    told.memory = after(told.memory, found(GAP), told.notifiers, LAG)
    told.memory = after(delivered(told.memory, [1, 2]), found(), told.notifiers, LAG)
    assert sorted(n.number for h in told.memory.notifiers.values() for n in h.waiting) == [3, 4]


CAUSES = st.sampled_from([GAP, UNDECIDED, cause("warning", "A"), cause("incomplete", "B", "1", "b"), cause("incomplete", "B", "2", "b")])


@given(st.lists(st.tuples(st.lists(CAUSES, unique_by=lambda c: c.id), st.lists(CAUSES)), max_size=12))
def test_who_hears_of_everything_knows_after_each_look_what_lasts(looks: list[tuple[list[Cause], list[Cause]]]) -> None:
    """The oracle keeps the list that a careful reader of the messages would keep."""
    told, reader = Told(), dict[str, set[str]]()
    for lasts, passed in looks:
        told.memory = after(told.memory, found(*lasts, passed=tuple(passed)), told.notifiers, LAG)
        [heard] = told.memory.notifiers.values()
        for notice in heard.waiting:
            if notice.event == "recovered":
                assert reader.pop(notice.cause.ends)
            else:
                assert notice.cause.id not in reader.setdefault(notice.cause.ends, set())
                reader[notice.cause.ends].add(notice.cause.id)
        told.memory = delivered(told.memory, [n.number for n in heard.waiting])
        assert set(reader) == {c.ends for c in lasts}
        assert {c.id for c in lasts} <= set().union(*reader.values())
