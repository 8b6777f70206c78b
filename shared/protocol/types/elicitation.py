"""Requests from a server to the user (2026-07-28, Client Features, Elicitation). Only clients import this module."""

from typing import Any, Literal

from .base import Params


class ElicitForm(Params):
    """A form to fill in. `requested_schema` is a flat object of strings, numbers, booleans and choices."""

    mode: Literal["form"] = "form"
    message: str
    requested_schema: dict[str, Any]

    def defaults(self) -> dict[str, Any]:
        """Return the initial values of the form (SEP-1034), without those that no answer may contain."""
        fields = self.requested_schema.get("properties")
        items = fields.items() if isinstance(fields, dict) else ()
        defaults = {name: field.get("default") for name, field in items if isinstance(field, dict)}
        # For example null: the user would see an error in a field that they did not touch.
        return {
            name: value
            for name, value in defaults.items()
            if isinstance(value, str | int | float)
            or (isinstance(value, list) and all(isinstance(item, str) for item in value))
        }


class ElicitUrl(Params):
    """A web page for the user to visit, for data that must not pass through the client (since 2025-11-25). A client
    opens or fetches it only after the user has seen the whole `url` and agreed."""

    mode: Literal["url"] = "url"
    message: str
    url: str
    elicitation_id: str | None = None
    """The id with which the server later reports that the user has finished; only 2025-11-25 has it."""
