"""The contents of a release: what the distributions must and must not have, and versions that belong together."""

import re
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

from hatch_build import NAME
from servers.catalog import load_catalog
from shared.version import __version__

_PRIVATE = re.compile(r"(^|/)(\.git|\.venv|node_modules|__pycache__|\.env|.*secret.*\.txt)(/|$)|\.pyc$")
_NOT_IN_A_WHEEL = re.compile(r"(^|/)(tests?|benchmarks?|conftest\.py|test_[^/]*\.py)(/|$)")


def find_faults(root: Path, dist: Path) -> Iterator[str]:
    """Yield one line for each fault of what is in `dist`, built from the checkout `root`."""
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        yield from (f"{source.name} has {name}" for name in archive.getnames() if _PRIVATE.search(name))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
    yield from find_wheel_faults(names, info)
    yield from find_metadata_faults(str(metadata.get_payload()), metadata.get_all("Project-URL", []))
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = {entry.name: entry.version for entry in load_catalog().servers}
    yield from find_version_faults(metadata["Version"], changelog, entries)


def find_wheel_faults(names: list[str], info: str) -> Iterator[str]:
    """Yield what is wrong with the paths in a wheel, whose metadata is in the folder `info`."""
    for name in names:
        if name.partition("/")[0] not in (NAME, info):
            yield f"the wheel has {name}, outside of {NAME}"
        elif _NOT_IN_A_WHEEL.search(name) or _PRIVATE.search(name):
            yield f"the wheel has {name}"
    for needed in (f"{NAME}/py.typed", f"{info}/licenses/LICENSE", f"{NAME}/servers/catalog.yaml"):
        if needed not in names:
            yield f"the wheel has no {needed}"


def find_metadata_faults(readme: str, urls: list[str]) -> Iterator[str]:
    """Yield the links of the page on an index that lead nowhere there, and what is missing."""
    yield from (f"the index page links to {link}" for link in re.findall(r"\]\((?!\w+:|#)([^)]*)\)", readme))
    if not urls:
        yield "the metadata has no Project-URL"


def find_version_faults(version: str, changelog: str, entries: dict[str, str]) -> Iterator[str]:
    """Yield what has another version than the wheel: shared/version.py, the servers of the catalog, CHANGELOG.md."""
    if version != __version__:
        yield f"the wheel has the version {version}, shared/version.py {__version__}"
    yield from (
        f"{name} has the version {other} in catalog.yaml" for name, other in entries.items() if other != version
    )
    sections = re.findall(r"^## (.+?)(?: - .*)?$", changelog, re.MULTILINE)
    released = [section for section in sections if section != "Unreleased"]
    if released[:1] != [version]:
        yield f"CHANGELOG.md has no section '## {version} - DATE' at its top: rename Unreleased to it"
