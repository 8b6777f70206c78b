"""The table of versions."""

import pytest

from shared.protocol.versions import (
    HANDSHAKE_VERSIONS,
    NEWEST,
    NEWEST_HANDSHAKE,
    V2025_03_26,
    V2026_07_28,
    VERSIONS,
    find_version,
    versions_between,
)
from tests import schemas


def test_the_versions_are_those_with_an_official_schema():
    assert tuple(str(version) for version in VERSIONS) == schemas.VERSIONS


def test_they_are_ordered_as_they_came():
    assert [version.order for version in VERSIONS] == list(range(len(VERSIONS)))


def test_the_newest_one_has_no_handshake_and_all_others_have():
    assert NEWEST is V2026_07_28
    assert VERSIONS[:-1] == HANDSHAKE_VERSIONS
    assert NEWEST_HANDSHAKE is VERSIONS[-2]


def test_one_version_has_batches():
    assert [version for version in VERSIONS if version.batching] == [V2025_03_26]


def test_a_version_is_found_by_its_date_and_nothing_is_guessed():
    assert [find_version(version.date) for version in VERSIONS] == list(VERSIONS)
    others = ["", "2025-6-18", "2025-06-18 ", "2025-06-19", None, 20250618, ["2025-06-18"], True]
    assert [date for date in others if find_version(date) is not None] == []


def test_a_missing_resource_has_a_code_of_its_own_before_the_newest_version():
    assert {version.resource_not_found for version in HANDSHAKE_VERSIONS} == {-32002}
    assert NEWEST.resource_not_found == -32602


def test_both_ends_of_a_range_belong_to_it() -> None:
    ranges: dict[tuple[str | None, str | None], list[str]] = {
        (None, "2025-03-26"): ["2024-11-05", "2025-03-26"],
        ("2025-11-25", None): ["2025-11-25", "2026-07-28"],
        ("2025-06-18", "2025-06-18"): ["2025-06-18"],
    }
    assert {ends: [version.date for version in versions_between(*ends)] for ends in ranges} == ranges


@pytest.mark.parametrize(("oldest", "newest"), [("2025-06-18", "2025-03-26"), ("2025-06", None)])
def test_a_range_without_versions_does_not_exist(oldest: str, newest: str | None) -> None:
    with pytest.raises(ValueError, match="version"):
        versions_between(oldest, newest)
