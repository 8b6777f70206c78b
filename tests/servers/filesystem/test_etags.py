"""What makes another etag."""

import os
import re

import pytest

from shared.kit.rooted.entries import etag_of


def etag(inode=1, device=2, size=3, modified=4, changed=5):
    times = {"st_mtime_ns": modified, "st_ctime_ns": changed}
    return etag_of(os.stat_result((0o644, inode, device, 1, 0, 0, size, 0, 0, 0), times))


def test_an_etag_is_sixteen_digits():
    assert re.fullmatch("[0-9a-f]{16}", etag())


@pytest.mark.parametrize("what", ["inode", "device", "size", "modified", "changed"])
def test_whatever_the_file_system_notes_down_makes_another_one(what):
    assert etag(**{what: 9}) != etag() == etag()
