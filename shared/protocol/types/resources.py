"""Resources (2026-07-28, Server Features, Resources), and this package's own keys for conditional reads, which the
protocol does not have. The domain `.internal` is reserved for private use, so no other keys begin in the same way.
"""

from pydantic import Field

from .base import Annotations, Icon, Integer, Items, Meta, Params, Wire
from .tools import InputParams

CONDITIONAL_READS = "internal.mcp-server-bundle/conditional-reads"
"""The extension with which a client declares that it accepts "not modified" as an answer to `resources/read`."""
ETAG = "internal.mcp-server-bundle/etag"
"""In `_meta` of the result of a read: the etag of its contents. In a request: the etag of the contents that the
client has."""
NOT_MODIFIED = "internal.mcp-server-bundle/notModified"
"""True in `_meta` of a result whose contents were left out because the client already has them."""


class UriParams(Params):
    """Params with the URI of one resource."""

    uri: str


class ReadResourceParams(UriParams, InputParams):
    """The resource to read."""


class SubscriptionFilter(Wire):
    """The changes that a `subscriptions/listen` stream requests."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: Items[str] = Field(default_factory=list)
    task_ids: Items[str] = Field(default_factory=list)


class ListenParams(Params):
    """The params of `subscriptions/listen` (2026-07-28)."""

    notifications: SubscriptionFilter


class _Described(Wire):
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: Items[Icon] | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


class Resource(_Described):
    """A resource as listed by `resources/list`. `size` is in bytes."""

    uri: str
    size: Integer | None = None


class ResourceTemplate(_Described):
    """A family of resources, described by an RFC 6570 template."""

    uri_template: str
