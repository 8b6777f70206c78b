"""Models of results that only clients need, because the servers of this package build these results as dicts: pages
of lists, reads and completions (2026-07-28, Server Features)."""

from typing import Any

from pydantic import Field

from .base import Integer, Items, Meta, Wire
from .content import ResourceContents, TextResourceContents
from .prompts import Prompt
from .resources import Resource, ResourceTemplate
from .tools import Tool


class ResultPage(Wire):
    """One page of a list."""

    next_cursor: str | None = None
    """The cursor of the next page, which may be any text; None for the last page."""
    meta: Meta | None = Field(default=None, alias="_meta")


class ListToolsResult(ResultPage):
    """A page of tools."""

    tools: Items[Tool]


class ListResourcesResult(ResultPage):
    """A page of resources."""

    resources: Items[Resource]


class ListResourceTemplatesResult(ResultPage):
    """A page of resource templates."""

    resource_templates: Items[ResourceTemplate]


class ListPromptsResult(ResultPage):
    """A page of prompts."""

    prompts: Items[Prompt]


class ListSkillsResult(ResultPage):
    """A page of skills, each as received, so that an invalid one does not affect the others."""

    skills: Items[dict[str, Any]]


class GetSkillResult(Wire):
    """One skill, as received."""

    skill: dict[str, Any]


class ReadResourceResult(Wire):
    """The contents of a resource; several if the resource is a collection."""

    contents: Items[ResourceContents]
    meta: Meta | None = Field(default=None, alias="_meta")

    @property
    def text(self) -> str:
        """The text contents, joined."""
        return "".join(item.text for item in self.contents if isinstance(item, TextResourceContents))


class Completion(Wire):
    """At most 100 values that complete the typed text. `total` is the number of all such values, if known."""

    values: Items[str]
    total: Integer | None = None
    has_more: bool | None = None


class CompleteResult(Wire):
    """The answer to a completion."""

    completion: Completion
    meta: Meta | None = Field(default=None, alias="_meta")
