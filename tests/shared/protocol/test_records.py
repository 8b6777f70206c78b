"""Behavior of records at run time."""

import copy
import pickle
from dataclasses import FrozenInstanceError, field, replace

import pytest

from shared.protocol.records import frozen_record, mutable_record, record


@record
class Point:
    """A record with a default."""

    x: int
    names: dict[str, int] = field(default_factory=dict)


def test_records_compare_by_their_fields():
    assert Point(1) == Point(1, {}) != Point(2)
    assert replace(Point(1), x=2) == Point(2)


def test_records_of_different_classes_are_never_equal():
    @record
    class Other:
        x: int

    @record
    class Another:
        x: int

    assert Other(1) != Another(1)


def test_the_repr_of_a_record_shows_its_fields():
    assert repr(Point(1, {"a": 2})) == "Point(x=1, names={'a': 2})"


def test_records_have_slots_and_positional_patterns():
    assert not hasattr(Point(1), "__dict__")
    match Point(1, {"a": 2}):
        case Point(x, names):
            assert (x, names) == (1, {"a": 2})


def test_records_with_hashable_fields_are_hashable():
    @record
    class Key:
        name: str

    assert {Key("a"): 1}[Key("a")] == 1


@frozen_record
class Owner:
    name: str
    tags: tuple[str, ...] = ()


@mutable_record
class Counter:
    name: str
    count: int = 0


def test_a_frozen_record_and_its_copies_can_not_be_changed():
    owner = Owner("ada")
    for copied in (
        owner,
        copy.deepcopy(owner),
        pickle.loads(pickle.dumps(owner)),
        *(Owner("ada") for _ in range(30)),
    ):
        assert (copied, hash(copied), repr(copied)) == (owner, hash(owner), "Owner(name='ada', tags=())")
        with pytest.raises(FrozenInstanceError):
            copied.name = "bob"
        with pytest.raises(FrozenInstanceError):
            del copied.tags


def test_mutable_records_are_compared_by_identity():
    counter = Counter("a")
    counter.count += 1
    assert repr(counter) == "Counter(name='a', count=1)"
    assert counter == counter != Counter("a", 1)
    assert not hasattr(counter, "__dict__")
