"""The command that installs an extra, for each way of installing the bundle; it names no registry."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.program.installation import Installation, shell_line
from shared.program.messages import missing_extra_message

ROOT = Path(__file__).resolve().parents[3]
METADATA = """\
Metadata-Version: 2.4
Name: mcp-server-bundle
Requires-Dist: anyio>=4.9
Requires-Dist: backports-zstd>=1.0; (python_version < '3.14') and extra == 'fetch'
Requires-Dist: httpx[http2]>=0.28; extra == 'fetch'
Requires-Dist: google-re2>=1.1; extra == 'filesystem'
Requires-Dist: aiosqlite>=0.22; extra == 'sqlite'
"""


def installed(folder: Path, note: dict[str, Any] | None, *libraries: str) -> Installation:
    """Writes the metadata of an installation with these libraries into an environment; returns the installation."""
    site = folder / "lib" / "site-packages"
    info = site / "mcp_server_bundle-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    if note is not None:
        (info / "direct_url.json").write_text(json.dumps(note))
    for library in libraries:
        (site / f"{library}-1.0.dist-info").mkdir()
    return Installation.from_site(folder / "bin" / "python", site)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "my dist" / "mcp_server_bundle-0.1.0-py3-none-any.whl"
    path.parent.mkdir()
    path.touch()
    return path


def noted(path: Path, **more: Any) -> dict[str, Any]:
    return {"url": path.as_uri(), **more}


def test_a_checkout_is_reinstalled_with_the_extra() -> None:
    where = shell_line([sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[http]"])
    assert missing_extra_message("http") == f"this needs the extra 'http': {where}"


def test_the_install_command_matches_the_installer(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(name: str, note: dict[str, Any] | None, *libraries: str, mark: str | None = None) -> str:
        copy = installed(tmp_path / name, note, *libraries)
        if mark is not None:
            (tmp_path / name / mark).touch()
        return copy.install_command("sqlite").replace(f"{tmp_path}/{name}/bin/python", "PYTHON")

    # pip takes the same source again, and an editable copy stays editable.
    assert line("pip", noted(wheel, archive_info={}), "google_re2") == f"PYTHON -m pip install '{wheel}[sqlite]'"
    editable = noted(tmp_path, dir_info={"editable": True})
    assert line("editable", editable) == f"PYTHON -m pip install -e '{tmp_path}[sqlite]'"
    # pipx and uv would drop the extras that are not named.
    all_extras = f"'{wheel}[fetch,filesystem,sqlite]'"
    for name, mark, command in (
        ("piped", "pipx_metadata.json", "pipx install --force"),
        ("tool", "uv-receipt.toml", "uv tool install"),
    ):
        assert line(name, noted(wheel), "google_re2", "httpx", mark=mark) == f"{command} {all_extras}"
    # A uvx environment is replaced by another call of uvx.
    monkeypatch.setattr("sys.argv", ["/cache/archive-v0/x/bin/mcp-bundle-sqlite", "shop.db"])
    passing = line("uv/archive-v0/x", noted(wheel), "google_re2")
    assert passing == f"uvx --from '{wheel}[filesystem,sqlite]' mcp-bundle-sqlite"
    # An installation from a URL names that URL.
    web = {"url": "https://a.example/x.whl", "archive_info": {}}
    git = {"url": "https://a.example/r", "vcs_info": {"vcs": "git", "commit_id": "1f"}, "subdirectory": "b"}
    again = "PYTHON -m pip install 'mcp-server-bundle[sqlite] @ "
    assert line("web", web) == f"{again}https://a.example/x.whl'"
    assert line("git", git) == f"{again}git+https://a.example/r@1f#subdirectory=b'"
    # An unknown or missing wheel is a placeholder.
    asked_for = "PYTHON -m pip install 'WHEEL[sqlite]', where WHEEL is the bundle's wheel"
    assert line("unknown", None) == line("gone", {"url": "file:///nowhere/x.whl"}) == asked_for


def test_a_broken_installation_is_forcibly_reinstalled(wheel: Path, tmp_path: Path) -> None:
    copy = installed(tmp_path / "env", noted(wheel, archive_info={}))
    forced = f"{tmp_path}/env/bin/python -m pip install --force-reinstall --no-deps '{wheel}'"
    assert (copy.install_command(reinstall=True), copy.is_ephemeral) == (forced, False)
    assert installed(tmp_path / "archive-v0" / "x", noted(wheel)).is_ephemeral
    with pytest.raises(ValueError, match="is missing or unknown"):
        installed(tmp_path / "unknown", None).specification("sqlite")


@pytest.mark.slow
def test_an_environment_without_pip_uses_uv(tmp_path: Path) -> None:
    site = installed(tmp_path, None).site_packages
    assert site is not None
    folder = site / "shared" / "program"
    folder.mkdir(parents=True)
    (site / "shared" / "__init__.py").touch()
    for name in ("text.py", "program/messages.py", "program/installation.py"):
        shutil.copy(ROOT / "shared" / name, site / "shared" / name)
    # A name set to None in sys.modules counts as not installed.
    needs = "from shared.program.messages import missing_extra_message; print(missing_extra_message('a'))"
    script = f"import sys; sys.modules['pip'] = None; {needs}"
    shown = subprocess.check_output([sys.executable, "-P", "-c", script], env={"PYTHONPATH": str(site)}, text=True)
    assert f"uv pip install --python {sys.executable} 'WHEEL[a]'" in shown
