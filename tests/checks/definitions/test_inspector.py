"""The official inspector knows which schemas some hosts refuse or cut: it finds none in any tool.

Where it can't be installed the tests are skipped and say why; under CI=true they fail.
"""

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests import npm
from tests.checks.definitions.listings import OFFERS, ROOT, Offer

pytestmark = pytest.mark.timeout(900)  # the first one may have to install it

FOLDER = Path(__file__).with_name("inspector")
PROGRAM = (
    FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
)
SECONDS = 100.0
FULLEST = {offer.entry.name: offer for offer in OFFERS}
"""Of each server, what lists most."""


@cache
def inspector() -> list[str]:
    """Its program, installed."""
    node = npm.find_node()
    npm.require(node, FOLDER, "the inspector")
    return [str(node), str(PROGRAM)]


@pytest.mark.parametrize("offer", FULLEST.values(), ids=str)
def test_the_inspector_finds_no_fault_in_any_schema(offer: Offer, tmp_path: Path) -> None:
    command = [*inspector(), "--cli", "--method", "tools/list", "--strict", "--", *offer.command(tmp_path)]
    done = subprocess.run(
        command,
        env={**os.environ, "HOME": str(tmp_path)},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert {tool["name"] for tool in json.loads(done.stdout)["tools"]} >= set(offer.entry.tools.read)
