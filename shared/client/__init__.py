"""A client for MCP servers of both eras, over every transport, and the names that its users import. The names are
imported here, not when they are used as in `shared`: otherwise `connect` would be the module and not the function.

A server's requests for input from the client (elicitation, sampling and roots) are called input requests.

The entry points are `client.py`, whose typed calls are in `calls/typed_calls.py`, and `group/group.py` for several
servers. Elsewhere

- a client is made from a command or a URL: `connect.py`; the process is stopped in
  `shared/transports/child/process.py`;
- the era and the version are determined: `connection/opening.py`, with `shared/protocol/session/client.py`;
- a lost connection is reopened, and a dead one detected: `connection/link.py`;
- a request gets its result, after input requests, URL elicitations and retries: `calls/requests.py`; the rules for
  retries: `connection/retry.py`;
- a call that became a task is followed to its end: `tasks/following.py`; one that was started continues in the
  background: `tasks/tool_task.py`;
- a request times out or is cancelled: `connection/connection.py`;
- results are cached: `cache.py`, `calls/cached.py`;
- changes are received: `connection/changes.py`, and for one connection `connection/subscription.py`;
- input requests are answered: `calls/handlers.py`, `calls/url_elicitation.py`; as tasks if the server requests that:
  `tasks/own_tasks.py`;
- the host approves or denies what is about to happen: `approval.py`;
- arguments and results are checked: `checks.py`, `schemas.py` and `schema_cost.py` of `schemas/`;
- tools with a wrong `x-mcp-header` are left out: `shared/protocol/http/client_headers.py`, over HTTP only;
- skills are read and verified: `skills/skills.py`, `skills/skill_checks.py`.
"""

from ..errors import InvalidAnswer, InvalidArguments, InvalidResult, McpError, PeerError, TaskCancelled, TaskLost
from ..protocol.types.client import CreateMessageResult, ElicitResult, Root
from ..protocol.types.elicitation import ElicitForm, ElicitUrl
from ..protocol.types.prompts import PromptReference, ResourceReference
from ..protocol.types.resources import ResourceTemplate
from ..protocol.types.results import Completion, ReadResourceResult
from ..protocol.types.sampling import CreateMessageParams
from ..protocol.types.tools import Tool
from .approval import Act, Denied
from .cache import ResponseCache
from .client import Client
from .connect import connect, connect_http, connect_sse, connect_stdio, connect_websocket
from .connection.changes import Change, Changes
from .errors import SessionLost, Unreached
from .group.group import ClientGroup, UnknownServer
from .group.listing import Listed, Listing
from .group.member import GroupServer, ServerStatus, group_server
from .options import ClientOptions
from .skills.skill_checks import SkillRefused
from .skills.skills import LoadedSkill, ServerSkills
from .tasks.following import TaskState
from .tasks.tool_task import StartedTool

__all__ = [
    "Act",
    "Change",
    "Changes",
    "Client",
    "ClientGroup",
    "ClientOptions",
    "Completion",
    "CreateMessageParams",
    "CreateMessageResult",
    "Denied",
    "ElicitForm",
    "ElicitResult",
    "ElicitUrl",
    "GroupServer",
    "InvalidAnswer",
    "InvalidArguments",
    "InvalidResult",
    "Listed",
    "Listing",
    "LoadedSkill",
    "McpError",
    "PeerError",
    "PromptReference",
    "ReadResourceResult",
    "ResourceReference",
    "ResourceTemplate",
    "ResponseCache",
    "Root",
    "ServerSkills",
    "ServerStatus",
    "SessionLost",
    "SkillRefused",
    "StartedTool",
    "TaskCancelled",
    "TaskLost",
    "TaskState",
    "Tool",
    "UnknownServer",
    "Unreached",
    "connect",
    "connect_http",
    "connect_sse",
    "connect_stdio",
    "connect_websocket",
    "group_server",
]
