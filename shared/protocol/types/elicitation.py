"""Requests of a server to the user (2026-07-28, Client Features, Elicitation). Only clients import this module."""

from typing import Any, Literal

from .base import Params


class ElicitForm(Params):
    """A form to fill in. `requested_schema` is a flat object of strings, numbers, booleans and choices."""

    mode: Literal["form"] = "form"
    message: str
    requested_schema: dict[str, Any]

    def defaults(self) -> dict[str, Any]:
        """Return the initial values of the form (SEP-1034), without those that an answer can't contain."""
        fields = self.requested_schema.get("properties")
        described = fields.items() if isinstance(fields, dict) else ()
        prefilled = {name: field.get("default") for name, field in described if isinstance(field, dict)}
        return {name: value for name, value in prefilled.items() if _may_be_answered(value)}


def _may_be_answered(value: object) -> bool:
    """Return True if an answer may contain the value. null would be an error that the user did not make."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str | int | float)


class ElicitUrl(Params):
    """A page to visit, for data that must not pass through the client (since 2025-11-25). It is opened only when the
    user has seen the whole `url` and agreed; nothing fetches it before then."""

    mode: Literal["url"] = "url"
    message: str
    url: str
    elicitation_id: str | None = None
    """The id by which the server reports the end of the visit; only 2025-11-25 has it."""
