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


def test_versions_are_ordered_by_date():
    assert [version.order for version in VERSIONS] == list(range(len(VERSIONS)))


def test_every_version_but_the_newest_has_a_handshake():
    assert NEWEST is V2026_07_28
    assert VERSIONS[:-1] == HANDSHAKE_VERSIONS
    assert NEWEST_HANDSHAKE is VERSIONS[-2]


def test_only_2025_03_26_has_batches():
    assert [version for version in VERSIONS if version.batching] == [V2025_03_26]


def test_versions_are_looked_up_by_exact_date():
    assert [find_version(version.date) for version in VERSIONS] == list(VERSIONS)
    others = ["", "2025-6-18", "2025-06-18 ", "2025-06-19", None, 20250618, ["2025-06-18"], True]
    assert [date for date in others if find_version(date) is not None] == []


def test_handshake_versions_have_an_error_code_for_missing_resources():
    assert {version.resource_not_found for version in HANDSHAKE_VERSIONS} == {-32002}
    assert NEWEST.resource_not_found == -32602


def test_ranges_of_versions_include_both_ends() -> None:
    ranges: dict[tuple[str | None, str | None], list[str]] = {
        (None, "2025-03-26"): ["2024-11-05", "2025-03-26"],
        ("2025-11-25", None): ["2025-11-25", "2026-07-28"],
        ("2025-06-18", "2025-06-18"): ["2025-06-18"],
    }
    assert {ends: [version.date for version in versions_between(*ends)] for ends in ranges} == ranges


@pytest.mark.parametrize(("oldest", "newest"), [("2025-06-18", "2025-03-26"), ("2025-06", None)])
def test_empty_and_unknown_ranges_of_versions_raise_an_error(oldest: str, newest: str | None) -> None:
    with pytest.raises(ValueError, match="version"):
        versions_between(oldest, newest)
