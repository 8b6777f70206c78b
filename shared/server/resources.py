"""The resources and resource templates of a server: the entries of their lists, and reading."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from types import NoneType
from typing import Any, TypedDict

from ..errors import DeclarationError, ResourceNotFound
from ..protocol.records import record
from ..protocol.types.base import Annotations, Icon, Meta
from ..protocol.types.content import BlobResourceContents, TextResourceContents
from ..protocol.types.resources import Resource, ResourceTemplate
from ..protocol.uri_template import UriTemplate, is_uri, is_uri_template
from .dispatch.context import Context
from .functions.annotations import format_type, is_content, is_one_of
from .functions.function import Function
from .functions.location import is_own

log = logging.getLogger("shared.server.resources")

_READABLE = (str, bytes, NoneType, TextResourceContents, BlobResourceContents)
_READABLE_NAMES = "return text, bytes, or resource contents"
_MAX_UNLISTED = 100
"""Maximum number of resources that were logged because their URIs are invalid."""

Lister = Callable[[Context[Any]], Awaitable[Iterable[Resource]]]
"""A function that returns resources to list in addition to the declared ones."""


@record
class ResourceOptions:
    """The options of `@resource`, in addition to the URI."""

    name: str | None = None
    title: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None
    meta: Meta | None = None
    at_once: Callable[..., Any] | None = None
    """A plain function that accepts the same arguments as the resource's function, and returns the same value if that
    is possible at once, without waiting. If it returns None, the resource's function is called."""


class ResourceKeywords(TypedDict, total=False):
    """The fields of `ResourceOptions`, as keyword arguments of a decorator."""

    name: str | None
    title: str | None
    mime_type: str | None
    annotations: Annotations | None
    icons: list[Icon] | None
    meta: Meta | None
    at_once: Callable[..., Any] | None


class RegisteredResource:
    """A declared resource, or a declared template for many resources."""

    def __init__(self, uri: str, function: Callable[..., Any], options: ResourceOptions) -> None:
        self.function = Function(function, "resource", Context)
        self.template = UriTemplate(uri)
        self.uri = uri
        self.mime_type = options.mime_type
        self._at_once = options.at_once
        self._may_be_missing = self.function.returns is not None and is_content(None, self.function.returns)
        self._mime_field = {} if options.mime_type is None else {"mimeType": options.mime_type}
        what = f"resource {self.function.name!r}"
        if not is_uri_template(uri):
            raise DeclarationError(f"{what}: {uri!r} is not a URI: a URI begins with a scheme, as in note://today")
        for name in self.template.names:
            if name not in self.function.names():
                raise DeclarationError(f"{what}: {uri} has the variable {name!r}, which is not an argument")
        for name in self.function.names():
            if name not in self.template.names:
                raise DeclarationError(f"{what}: its argument {name!r} is not a variable of {uri}")
        if not is_own(function):
            self.function.check_texts()
            if not is_one_of(self.function.returns, _READABLE):
                raise DeclarationError(f"{what} can't return {format_type(self.function.returns)}: {_READABLE_NAMES}")
        self._entry_fields: dict[str, Any] = {
            "name": options.name or self.function.name,
            "title": options.title,
            "description": self.function.doc or None,
            "mime_type": options.mime_type,
            "annotations": options.annotations,
            "icons": options.icons,
            "meta": options.meta,
        }
        if not is_own(function):
            _ = self.entry  # so that invalid options are reported now

    @cached_property
    def entry(self) -> Resource | ResourceTemplate:
        """The entry for `resources/list` or `resources/templates/list`. Raises ValidationError."""
        if self.is_template:
            return ResourceTemplate(uri_template=self.uri, **self._entry_fields)
        return Resource(uri=self.uri, **self._entry_fields)

    @property
    def is_template(self) -> bool:
        """True if the URI has variables."""
        return bool(self.template.names)

    async def read(self, context: Context[Any], uri: str, variables: dict[str, str]) -> dict[str, Any]:
        """Return the contents of the resource `uri`; `variables` are those of the template. Raises ResourceNotFound
        if the function returns None and its annotation allows that, and the exceptions of the function."""
        value = await self.function.call(**self.function.bind_text(variables, context))
        if value is None and self._may_be_missing:
            raise ResourceNotFound(uri)
        values = value if isinstance(value, list | tuple) else [value]
        return {"contents": [self._to_contents(uri, item) for item in values]}

    def read_at_once(self, context: Context[Any], uri: str, variables: dict[str, str]) -> dict[str, Any] | None:
        """Return the same as `read` if possible at once, otherwise None. Raises the exceptions of the function."""
        if self._at_once is None:
            return None
        value = self._at_once(**self.function.bind_text(variables, context))
        return None if value is None else {"contents": [self._to_contents(uri, value)]}

    def _to_contents(self, uri: str, value: Any) -> dict[str, Any]:
        match value:
            case str():
                return {"uri": uri, **self._mime_field, "text": value}
            case bytes():
                return BlobResourceContents.of(uri, value, self.mime_type).to_wire()
            case TextResourceContents() | BlobResourceContents():
                return value.to_wire()
            case _:
                raise TypeError(f"{type(value).__name__} is not a resource; {_READABLE_NAMES}")


class Resources:
    """The resources and templates of a server, in the order of their declaration."""

    def __init__(self) -> None:
        self._resources: dict[str, RegisteredResource] = {}
        self.listers: list[Lister] = []
        self._unlisted: set[str] = set()

    def add(self, resource: RegisteredResource) -> None:
        """Add a resource or a template. Raises DeclarationError if its URI is taken."""
        if resource.uri in self._resources:
            raise DeclarationError(f"there is already a resource {resource.uri!r}")
        self._resources[resource.uri] = resource

    def all(self) -> list[RegisteredResource]:
        """Return every declared resource and template."""
        return list(self._resources.values())

    def remove(self, uri: str) -> bool:
        """Remove a resource or a template; return False if there was none."""
        return self._resources.pop(uri, None) is not None

    def __len__(self) -> int:
        return len(self._resources) + len(self.listers)

    async def page(self, context: Context[Any], start: int, limit: int) -> list[Resource]:
        """Return at most `limit` resources, from index `start` on, of all: the declared resources, followed by those
        of the listers. Listers whose resources come after the page are not called."""
        part = [resource.entry for resource in self._resources.values() if isinstance(resource.entry, Resource)]
        page = part[start : start + limit]
        for lister in self.listers:
            if len(page) == limit:
                break
            start = max(start - len(part), 0)
            part = [resource for resource in await lister(context) if self._can_be_listed(resource)]
            page += part[start : start + limit - len(page)]
        return page

    def _can_be_listed(self, resource: Resource) -> bool:
        """Return True if the URI of `resource` is valid, so that clients can read it."""
        uri = resource.uri
        if is_uri(uri):
            return True
        # A client that checks URIs would refuse the whole list, so the resource is left out, and logged once.
        if uri not in self._unlisted and len(self._unlisted) < _MAX_UNLISTED:
            self._unlisted.add(uri)
            log.error(
                "omitting a resource from the list: %r is not a URI; `expand_uri` builds one from a template", uri
            )
        return False

    def templates(self) -> list[dict[str, Any]]:
        """Return the entries for `resources/templates/list`."""
        return [resource.entry.to_wire() for resource in self._resources.values() if resource.is_template]

    def template(self, uri: str) -> UriTemplate | None:
        """Return the template that was declared with exactly the text `uri`; None if there is none."""
        resource = self._resources.get(uri)
        return resource.template if resource is not None and resource.is_template else None

    def is_declared(self, uri: str) -> bool:
        """Return True if a resource or a template was declared with exactly the text `uri`."""
        return uri in self._resources

    def match(self, uri: str) -> tuple[RegisteredResource, dict[str, str]]:
        """Return the declaration that serves `uri`, and the variables if it is a template. Raises ResourceNotFound if
        there is none."""
        exact = self._resources.get(uri)
        # A resource that was declared with this URI takes precedence over a template that matches it too.
        if exact is not None and not exact.is_template:
            return exact, {}
        for resource in self._resources.values():
            variables = resource.template.match(uri) if resource.is_template else None
            if variables is not None:
                return resource, variables
        raise ResourceNotFound(uri)
