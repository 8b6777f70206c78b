"""The environment of the commands: a home directory, without the variables of the user who runs the tests."""

import os
from pathlib import Path

import pytest

PLACES = (
    *("APPDATA", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "FLATPAK_XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"),
    *("CLINE_DATA_DIR", "CLINE_MCP_SETTINGS_PATH", "GEMINI_CLI_HOME", "CODEX_HOME"),
)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MCP_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets a home directory for the test, in which the commands run; no variable points outside it."""
    for variable in PLACES:
        monkeypatch.delenv(variable, raising=False)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path
