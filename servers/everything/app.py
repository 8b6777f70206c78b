"""The server that the other files declare their tools, prompts and resources on."""

from shared import Context, Implementation, Server, __version__
from shared.extensions.skills import skills

from .skills import Guide

__all__ = ["Ctx", "app"]

Ctx = Context[None]

app = Server[None](
    Implementation(
        name="everything",
        title="Everything",
        version=__version__,
        description="Shows every feature of the protocol, for trying out clients.",
    ),
    instructions="A bench for authors of clients: it does no useful work. Each tool, prompt and resource shows one "
    "feature of the protocol; its description says which. skill://try-a-client/SKILL.md tells how to check a client.",
    capabilities={"logging": {}},
    extensions=[skills(Guide())],
)
