"""Behavior of records at run time."""

from dataclasses import field, replace

from shared.protocol.records import record


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
