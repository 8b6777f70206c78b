"""A client for MCP servers of both eras, over every transport, and the names that its users import. They are here
from the start, unlike those of `shared`: `connect` would else be the module of that name.

What a program calls: `client.py`, whose typed calls stand in `typed.py`, and `group.py` for several servers. Where

- a client is made, of a command or a URL: `connect.py`; the process is stopped in `shared/transports/process.py`;
- the era and the version are found out: `opening.py`, with the rules in `shared/protocol/session/client.py`;
- a lost connection is opened again: `link.py`; a dead one is noticed: `heartbeat.py`;
- a request has its result, after rounds, visits and repetitions: `requests.py`; what may be repeated, and when, as
  `Retry-After` says: `retry.py`;
- a call that became a task is followed to its end: `following.py`, `task_support.py`; one that was
  started works on meanwhile: `started.py`;
- a request runs out of time, and is cancelled: `connection.py`;
- results are kept: `cache.py`, `cached.py`, `flight.py`;
- changes are heard: `changes.py`, one connection long `subscription.py`;
- questions of the server are answered: `handlers.py`, `visits.py`; as tasks where it wants that: `own_tasks.py`;
- the host decides what happens: `permit.py`;
- arguments and results are checked: `checks.py`, `schemas.py`, `schema_cost.py`;
- tools with a wrong `x-mcp-header` are left out: `shared/protocol/http/client_headers.py`, over HTTP alone;
- skills are read and verified: `skills.py`, `skill_checks.py`.
"""

from ..errors import InvalidAnswer, InvalidArguments, InvalidResult, McpError, PeerError, TaskCancelled, TaskLost
from ..protocol.types.client import CreateMessageResult, ElicitResult, Root
from ..protocol.types.elicitation import ElicitForm, ElicitUrl
from ..protocol.types.prompts import PromptReference, ResourceReference
from ..protocol.types.resources import ResourceTemplate
from ..protocol.types.results import Completion, ReadResourceResult
from ..protocol.types.sampling import CreateMessageParams
from ..protocol.types.tools import Tool
from .cache import ResponseCache
from .changes import Change, Changes
from .client import Client
from .connect import connect, connect_http, connect_sse, connect_stdio, connect_websocket
from .errors import SessionLost, Unreached
from .following import TaskState
from .group import ClientGroup, UnknownServer
from .listing import Listed, Listing
from .member import GroupServer, ServerStatus, group_server
from .options import ClientOptions
from .permit import Act, Denied
from .skill_checks import SkillRefused
from .skills import LoadedSkill, ServerSkills
from .started import StartedTool

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
