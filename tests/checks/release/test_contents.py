"""Checks of a release find faults; `make release` itself takes minutes, and runs in the publishing workflow."""

import pytest

from hatch_build import link, namespace
from tests.checks.release.contents import find_metadata_faults, find_version_faults, find_wheel_faults

INFO = "mcp_server_bundle-1.0.dist-info"
GOOD = ["mcp_server_bundle/py.typed", "mcp_server_bundle/servers/catalog.yaml", f"{INFO}/licenses/LICENSE"]
REPOSITORY = "https://github.com/someone/bundle"


def test_a_wheel_has_one_package_with_its_license_and_types() -> None:
    assert list(find_wheel_faults(GOOD, INFO)) == []
    assert list(find_wheel_faults(GOOD[:1], INFO)) == [f"the wheel has no {GOOD[2]}", f"the wheel has no {GOOD[1]}"]


@pytest.mark.parametrize("name", ["shared/text.py", "mcp_server_bundle/tests/a.py", "mcp_server_bundle/a.pyc"])
def test_a_file_foreign_to_a_wheel_is_named(name: str) -> None:
    (fault,) = find_wheel_faults([*GOOD, name], INFO)
    assert name in fault


@pytest.mark.parametrize(
    ("changelog", "entry", "faults"),
    [("## 0.1.0 - 2026-12-01\n", "0.1.0", 0), ("## Unreleased\n", "0.1.0", 1), ("## 0.1.0\n", "0.0.9", 1)],
)
def test_versions_must_agree_with_the_changelog(changelog: str, entry: str, faults: int) -> None:
    assert len(list(find_version_faults("0.1.0", changelog, {"fetch": entry}))) == faults


def test_the_page_of_an_index_links_to_the_repository() -> None:
    text = "[a](docs/a.md#b) ![c](c.png) [d](https://d.example) [e](#e)"
    assert len(list(find_metadata_faults(text, []))) == 3
    page = link(text, REPOSITORY, ["mcp-bundle-fetch"])
    assert list(find_metadata_faults(page, [f"Repository, {REPOSITORY}"])) == []
    assert f"[a]({REPOSITORY}/blob/HEAD/docs/a.md#b) ![c]({REPOSITORY}/raw/HEAD/c.png)" in page
    assert "<!-- mcp-name: io.github.someone/mcp-bundle-fetch -->" in page


def test_a_repository_address_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not of the form https://github\.com/USER/NAME"):
        namespace("https://example.org/bundle")
