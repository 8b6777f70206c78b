"""Resources (2026-07-28, Server Features, Resources), and keys for conditional reads, which this package adds to the
protocol. They begin with a name in the domain `.internal`, which is reserved for private use, so nobody else defines
them.
"""

from pydantic import Field

from .base import Annotations, Icon, Integer, Items, Meta, Params, Wire
from .tools import InputParams

CONDITIONAL_READS = "internal.mcp-server-bundle/conditional-reads"
"""The extension with which a client declares that it accepts "not modified" as an answer to `resources/read`."""
ETAG = "internal.mcp-server-bundle/etag"
"""A key of `_meta`. In a result, its value is the etag of the contents; in a request, the etag of the contents that
the client already has."""
NOT_MODIFIED = "internal.mcp-server-bundle/notModified"
"""A key of `_meta`. It is true in a result without contents, because the client already has the current ones."""


class UriParams(Params):
    """Params with the URI of one resource."""

    uri: str


class ReadResourceParams(UriParams, InputParams):
    """The params of `resources/read`."""


class SubscriptionFilter(Wire):
    """The changes that the client wants to receive on a `subscriptions/listen` stream."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: Items[str] = Field(default_factory=list)
    task_ids: Items[str] = Field(default_factory=list)


class ListenParams(Params):
    """The params of `subscriptions/listen` (2026-07-28)."""

    notifications: SubscriptionFilter


class _ResourceFields(Wire):
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: Items[Icon] | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


class Resource(_ResourceFields):
    """A resource as listed by `resources/list`. `size` is in bytes."""

    uri: str
    size: Integer | None = None


class ResourceTemplate(_ResourceFields):
    """A family of resources, described by an RFC 6570 template."""

    uri_template: str
