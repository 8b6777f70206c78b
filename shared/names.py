"""The public names for server authors, from the whole package. `shared` exports them too, and loads this module when
the first of them is used."""

from .errors import InvalidParams, MissingCapability, ResourceNotFound, RpcError, ToolError
from .protocol.session.questions import Question, elicit_form, elicit_url, list_roots, sample
from .protocol.types.base import Annotations, Icon, Implementation
from .protocol.types.client import LogLevel
from .protocol.types.content import (
    AudioContent,
    BlobResourceContents,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from .protocol.types.prompts import CompletionArgument, GetPromptResult, Prompt, PromptArgument, PromptMessage
from .protocol.types.resources import Resource
from .protocol.types.tools import CallToolResult
from .protocol.uri_template import expand_uri
from .server.dispatch.context import Answer, Context
from .server.features import Features
from .server.results import Data, Text
from .server.run import Run
from .server.run import Run as Running  # the earlier name, which existing servers import
from .server.running import Opening
from .server.server import Server
from .version import __version__

__all__ = [
    "Annotations",
    "Answer",
    "AudioContent",
    "BlobResourceContents",
    "CallToolResult",
    "CompletionArgument",
    "Content",
    "Context",
    "Data",
    "EmbeddedResource",
    "Features",
    "GetPromptResult",
    "Icon",
    "ImageContent",
    "Implementation",
    "InvalidParams",
    "LogLevel",
    "MissingCapability",
    "Opening",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "Question",
    "Resource",
    "ResourceLink",
    "ResourceNotFound",
    "RpcError",
    "Run",
    "Running",
    "Server",
    "Text",
    "TextContent",
    "TextResourceContents",
    "ToolError",
    "__version__",
    "elicit_form",
    "elicit_url",
    "expand_uri",
    "list_roots",
    "sample",
]
