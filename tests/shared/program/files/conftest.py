"""The files and directories of the tests of `servers.common.files`, which does its work by what is tested here."""

from tests.servers.common.files.conftest import either, no_leak, outside, root, way

__all__ = ["either", "no_leak", "outside", "root", "way"]
