"""What clients share."""

from shared.server.dispatch.portions import Portions


def test_what_one_client_gave_back_others_have() -> None:
    portions = Portions(2)
    for client in "abcabc":
        assert portions.reserve(client)
        assert not portions.reserve(client)
        portions.release(client)


def test_one_client_has_half_and_the_next_half_of_the_rest() -> None:
    portions = Portions(100)
    assert portions.reserve("a", 50)
    assert not portions.reserve("a", 1)
    assert portions.reserve("b", 25)
    assert not portions.reserve("b", 1)


def test_what_is_more_than_half_is_had_alone() -> None:
    portions = Portions(100)
    assert portions.reserve("a", 300)
    assert not portions.reserve("b", 1)
    portions.release("a", 300)
    assert portions.reserve("b", 1)
