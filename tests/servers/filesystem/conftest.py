"""The same files and directories as the tests of the kit have."""

from tests.shared.kit.rooted.conftest import SECRET, at, either, files, no_leak, outside, root, swapping, way

__all__ = ["SECRET", "at", "either", "files", "no_leak", "outside", "root", "swapping", "way"]
