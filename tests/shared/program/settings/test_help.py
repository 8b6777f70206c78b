"""The help of a program."""

from pydantic import BaseModel

from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group


class Settings(BaseModel):
    folder: str = "notes"


class Required(BaseModel):
    folder: str


def test_an_option_without_a_description_shows_its_default() -> None:
    text = OptionParser("notes", [Group(Settings.model_fields, "notes", "NOTES")]).format_help()
    assert "(default: notes) [NOTES_FOLDER]" in text
    assert "None" not in text


def test_a_field_without_a_default_is_shown_as_required() -> None:
    text = OptionParser("notes", [Group(Required.model_fields, "notes", "NOTES")]).format_help()
    assert "(required) [NOTES_FOLDER]" in text
    assert "Undefined" not in text
