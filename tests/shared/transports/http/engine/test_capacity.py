"""The limit on connections of a process."""

import subprocess
import sys

import pytest

from shared.transports.http.engine.capacity import Capacity

pytest.importorskip("resource", reason="Windows has no limit of descriptors: run it on Linux or macOS")

RAISED = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
from shared.transports.http.engine.capacity import max_connections
most = max_connections()
soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
assert soft == wanted and most == soft - 256, (soft, hard, most)
"""


FEW = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from shared.transports.http.engine.capacity import max_connections
assert max_connections() == 128
"""


def test_addresses_of_one_ipv6_network_count_together() -> None:
    capacity = Capacity(8)
    assert all(capacity.acquire(f"2001:db8::{number}") for number in range(7))
    assert not capacity.acquire("2001:db8::ffff")
    assert capacity.acquire("2001:db8:0:1::1")
    capacity.release("2001:db8::1")
    assert capacity.acquire("2001:db8::ffff")


def test_ipv4_addresses_within_ipv6_addresses_count_apart() -> None:
    capacity = Capacity(8)
    assert all(capacity.acquire(f"::ffff:192.0.2.{number}") for number in range(8))
    capacity.release("192.0.2.1")
    assert capacity.acquire("192.0.2.1")


def test_a_process_with_few_descriptors_still_accepts_connections() -> None:
    subprocess.run([sys.executable, "-c", FEW], check=True)


def test_the_soft_limit_of_descriptors_is_raised() -> None:
    subprocess.run([sys.executable, "-c", RAISED], check=True)
