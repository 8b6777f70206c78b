"""Shares of a limited quantity."""

from shared.server.dispatch.portions import Portions


def test_a_released_share_is_available_to_others() -> None:
    portions = Portions(2)
    for client in "abcabc":
        assert portions.reserve(client)
        assert not portions.reserve(client)
        portions.release(client)


def test_each_client_may_take_half_of_the_rest() -> None:
    portions = Portions(100)
    assert portions.reserve("a", 50)
    assert not portions.reserve("a", 1)
    assert portions.reserve("b", 25)
    assert not portions.reserve("b", 1)


def test_a_single_client_may_take_more_than_half() -> None:
    portions = Portions(100)
    assert portions.reserve("a", 300)
    assert not portions.reserve("b", 1)
    portions.release("a", 300)
    assert portions.reserve("b", 1)
