"""The command that adds an extra works for the way in which a copy was installed, and names no registry."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.kit.installation import Installation, shell_line
from shared.kit.program import needs_extra

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
    """What an installer has left in an environment, with these libraries."""
    site = folder / "lib" / "site-packages"
    info = site / "mcp_server_bundle-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    if note is not None:
        (info / "direct_url.json").write_text(json.dumps(note))
    for library in libraries:
        (site / f"{library}-1.0.dist-info").mkdir()
    return Installation.in_site(folder / "bin" / "python", site)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "my dist" / "mcp_server_bundle-0.1.0-py3-none-any.whl"
    path.parent.mkdir()
    path.touch()
    return path


def noted(path: Path, **more: Any) -> dict[str, Any]:
    return {"url": path.as_uri(), **more}


def test_a_checkout_is_installed_again_with_the_extra() -> None:
    where = shell_line([sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[http]"])
    assert needs_extra("http") == f"it needs the extra 'http': {where}"


def test_pip_takes_the_wheel_that_it_took_before(wheel: Path, tmp_path: Path) -> None:
    copy = installed(tmp_path / "env", noted(wheel, archive_info={}), "google_re2")
    assert copy.line("sqlite") == f"{tmp_path}/env/bin/python -m pip install '{wheel}[sqlite]'"
    forced = f"{tmp_path}/env/bin/python -m pip install --force-reinstall --no-deps '{wheel}'"
    assert copy.line(again=True) == forced


def test_an_editable_copy_stays_one(tmp_path: Path) -> None:
    copy = installed(tmp_path / "env", noted(tmp_path, dir_info={"editable": True}))
    assert copy.line("sqlite") == f"{tmp_path}/env/bin/python -m pip install -e '{tmp_path}[sqlite]'"


def test_pipx_and_uv_are_told_all_extras_which_they_would_drop(wheel: Path, tmp_path: Path) -> None:
    for name, note, command in (
        ("piped", "pipx_metadata.json", "pipx install --force"),
        ("tool", "uv-receipt.toml", "uv tool install"),
    ):
        copy = installed(tmp_path / name, noted(wheel), "google_re2", "httpx")
        (tmp_path / name / note).touch()
        assert copy.line("sqlite") == f"{command} '{wheel}[fetch,filesystem,sqlite]'"


def test_a_copy_of_uvx_is_called_again_by_uvx(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/cache/archive-v0/x/bin/mcp-bundle-sqlite", "shop.db"])
    copy = installed(tmp_path / "uv" / "archive-v0" / "x", noted(wheel), "google_re2")
    assert copy.is_passing
    assert copy.line("sqlite") == f"uvx --from '{wheel}[filesystem,sqlite]' mcp-bundle-sqlite"


@pytest.mark.parametrize(
    ("note", "given"),
    [
        ({"url": "https://a.example/x.whl", "archive_info": {}}, "[sqlite] @ https://a.example/x.whl"),
        (
            {"url": "https://a.example/r", "vcs_info": {"vcs": "git", "commit_id": "1f"}, "subdirectory": "b"},
            "[sqlite] @ git+https://a.example/r@1f#subdirectory=b",
        ),
    ],
    ids=["wheel", "repository"],
)
def test_what_came_from_the_web_comes_from_there_again(note: dict[str, Any], given: str, tmp_path: Path) -> None:
    copy = installed(tmp_path / "env", note)
    assert copy.line("sqlite") == f"{tmp_path}/env/bin/python -m pip install 'mcp-server-bundle{given}'"


@pytest.mark.parametrize("note", [None, {"url": "file:///nowhere/x.whl"}], ids=["unknown", "gone"])
def test_where_nobody_knows_the_wheel_it_is_asked_for(note: dict[str, Any] | None, tmp_path: Path) -> None:
    copy = installed(tmp_path / "env", note)
    line = f"{tmp_path}/env/bin/python -m pip install 'WHEEL[sqlite]', where WHEEL is the bundle's wheel"
    assert copy.line("sqlite") == line
    with pytest.raises(ValueError, match="is gone, or not known"):
        copy.specification("sqlite")


@pytest.mark.slow
def test_an_environment_without_pip_is_left_to_uv(tmp_path: Path) -> None:
    site = installed(tmp_path, None).site
    assert site is not None
    kit = site / "shared" / "kit"
    kit.mkdir(parents=True)
    (site / "shared" / "__init__.py").touch()
    for name in ("program.py", "installation.py"):
        shutil.copy(ROOT / "shared" / "kit" / name, kit)
    # A name that is known to be no module is as good as one that is not installed.
    script = (
        "import sys; sys.modules['pip'] = None; from shared.kit.program import needs_extra; print(needs_extra('a'))"
    )
    shown = subprocess.check_output([sys.executable, "-P", "-c", script], env={"PYTHONPATH": str(site)}, text=True)
    assert f"uv pip install --python {sys.executable} 'WHEEL[a]'" in shown
