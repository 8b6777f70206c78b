"""A server whose extra is not installed says so at the start, though it loads those libraries later."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from servers.fetch.settings import Settings as FetchSettings
from servers.filesystem.settings import Settings as FilesystemSettings
from servers.prompts.settings import Settings as PromptSettings
from shared.kit.program import needs_extra

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("settings", "library", "extra"),
    [
        (FetchSettings, "trafilatura", "fetch"),
        (FilesystemSettings, "re2", "filesystem"),
        (PromptSettings, "jinja2", "prompts"),
    ],
)
def test_a_library_that_is_missing_is_named_by_its_extra(
    settings: type[BaseModel], library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A name that is known to be no module is as good as one that is not installed.
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ValidationError, match=re.escape(needs_extra(extra))):
        settings()


@pytest.mark.slow
@pytest.mark.parametrize(("server", "library"), [("sqlite", "aiosqlite"), ("postgres", "psycopg")])
def test_a_server_of_databases_says_it_before_it_is_loaded(server: str, library: str) -> None:
    start = f"import sys; sys.modules[{library!r}] = None; from servers.{server}.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", start], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"-c: {needs_extra(server)}"]
