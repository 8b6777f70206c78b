"""vscode-jsonrpc, with which editors speak to language servers, as a client of ours and as a server.

Where it can't be installed the tests are skipped and say why; under CI=true they fail.
"""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from shared.client.connect import connect_stdio
from shared.client.options import ClientOptions
from tests import npm

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(__file__).with_name("vscode_jsonrpc")
SECONDS = 60


@pytest.fixture(scope="module")
def node() -> Path:
    found = npm.find_node()
    npm.require(found, FOLDER, "vscode-jsonrpc")
    return found


@pytest.mark.timeout(400)  # the first one may have to install it
def test_the_library_of_language_servers_speaks_with_headers_both_ways(node: Path) -> None:
    command = [str(node), str(FOLDER / "drive.mjs"), sys.executable, "-m", "servers.everything"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    got = json.loads(done.stdout)
    assert got.pop("tools") > 10
    assert got == {
        "version": "2025-11-25",
        "echoed": 100_000,
        "progress": [0, 50, 100],
        "sampled": "LLM response: grün\n",
        "refused": -32601,
        "exit": 0,
    }


@pytest.mark.timeout(400)
@pytest.mark.parametrize("mode", ["auto", "handshake"])
async def test_our_client_speaks_with_headers_to_a_server_that_takes_no_lines(node: Path, mode: str) -> None:
    command, options = [str(node), str(FOLDER / "serve.mjs")], ClientOptions(mode=mode)
    with anyio.fail_after(SECONDS):
        async with connect_stdio(command, options, framing="content-length") as client:
            result = await client.raw.call_tool("echo", {"text": "grün\n"})
    assert result["content"] == [{"type": "text", "text": "grün\n"}]
