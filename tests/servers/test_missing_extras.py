"""A server whose extra is not installed says so at the start, though it loads those libraries later."""

import sys
from importlib.machinery import BuiltinImporter

import pytest
from pydantic import BaseModel, ValidationError

from servers.fetch.settings import Settings as FetchSettings
from servers.prompts.settings import Settings as PromptSettings


@pytest.mark.parametrize(
    ("settings", "library", "extra"),
    [(FetchSettings, "trafilatura", "fetch"), (PromptSettings, "jinja2", "prompts")],
)
def test_a_library_that_is_missing_is_named_by_its_extra(
    settings: type[BaseModel], library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, library, raising=False)
    monkeypatch.setattr("sys.meta_path", [BuiltinImporter])
    with pytest.raises(ValidationError, match=rf"pip install 'mcp-server-bundle\[{extra}\]'"):
        settings()
