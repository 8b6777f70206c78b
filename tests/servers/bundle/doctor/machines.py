"""A machine for each test: a home directory, the files of the clients, broken programs."""

import json
import sys
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from servers.bundle.doctor.examination import Examination, examine
from servers.bundle.doctor.findings import Finding, Severity
from servers.bundle.doctor.installation import CheckedInstallation
from servers.catalog import load_catalog
from servers.common.machine import Machine

ROOT = Path(__file__).resolve().parents[4]
CATALOG = load_catalog()
OLD_SERVER = """
import json, sys
info = {"name": "filesystem", "version": "0.0.1"}
for line in sys.stdin:
    request = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": request.get("id")}
    if request["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
    else:
        answer["error"] = {"code": -32601, "message": "method not found"}
    if "id" in request:
        print(json.dumps(answer), flush=True)
"""


class Home(NamedTuple):
    """One machine, which shares only the installation with the real one."""

    path: Path
    environment: dict[str, str]
    installation: CheckedInstallation

    @property
    def machine(self) -> Machine:
        return Machine("linux", self.path, self.environment)

    def write(self, name: str, text: str, mode: int = 0o600) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def program(self, text: str, name: str = "mcp-bundle-filesystem") -> str:
        """Writes a program with the name of one of our servers; returns its path."""
        return str(self.write(f"bin/{name}", text, 0o755))

    def cursor(self, name: str, **entry: Any) -> None:
        """Writes one server to the file of Cursor."""
        self.write(".cursor/mcp.json", json.dumps({"mcpServers": {name: entry}}))

    def start(self, server: str, *arguments: str, **env: str) -> None:
        """Writes one of the servers of this checkout to the file of Cursor."""
        words = ["-m", f"servers.{server}", *arguments]
        self.cursor(server, command=sys.executable, args=words, env={"PYTHONPATH": str(ROOT), **env})

    async def look(self, *names: str, seconds: float = 60) -> list[Finding]:
        """Returns the findings of `doctor` that are not OK."""
        entries = [CATALOG.entry(name) for name in names] or CATALOG.servers
        project = self.path / "project"
        examination = Examination(
            self.machine, self.installation, project, entries, is_named=bool(names), time_limit=seconds
        )
        return [finding for finding in await examine(examination) if finding.severity is not Severity.OK]

    async def only(self, *, seconds: float = 60) -> Finding:
        """Returns the only finding that is not OK."""
        found = await self.look(seconds=seconds)
        assert len(found) == 1, found
        return found[0]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "project").mkdir()
    (tmp_path / "notes").mkdir()
    return Home(tmp_path, {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, installed(tmp_path / "venv"))


def wheel_of(folder: Path) -> Path:
    """Returns the path of the installed wheel."""
    return folder / "mcp_server_bundle-0.1.0-py3-none-any.whl"


def installed(folder: Path, *, requires: str = "", script: str | None = None) -> CheckedInstallation:
    """Writes an installation of the bundle as pip does, with a requirement of the extra `sqlite`, and one script."""
    info = folder / "lib" / "mcp_server_bundle-0.1.0.dist-info"
    info.mkdir(parents=True)
    needs = f"Requires-Dist: {requires}; extra == 'sqlite'\n" if requires else ""
    metadata = "Metadata-Version: 2.4\nName: mcp-server-bundle\nVersion: 0.1.0\nRequires-Python: >=3.11\n"
    (info / "METADATA").write_text(f"{metadata}{needs}Provides-Extra: sqlite\n")
    (info / "entry_points.txt").write_text(
        "[console_scripts]\nmcp-bundle-sqlite = servers.sqlite.__main__:main\n" if script is not None else ""
    )
    (info / "RECORD").write_text("../bin/mcp-bundle-sqlite,,\n")
    wheel_of(folder).touch()
    (info / "direct_url.json").write_text(json.dumps({"url": wheel_of(folder).as_uri()}))
    (folder / "bin").mkdir()
    if script:
        (folder / "bin" / "mcp-bundle-sqlite").write_text(script)
    python = folder / "bin" / "python"
    python.symlink_to(sys.executable)
    return CheckedInstallation(python, PathDistribution(info))
