"""Shares the files and directories of the tests of `servers.common.files`, which is built on these modules."""

from tests.servers.common.files.conftest import either, no_leak, outside, root, way

__all__ = ["either", "no_leak", "outside", "root", "way"]
