"""The test server: one tool, prompt or resource for each feature that a client may meet on the wire.

Its domain is the protocol itself, so it consists only of features, which clients see in this order.
"""

from shared import Implementation, ResourceNotFound, Server, __version__
from shared.extensions.skills import skills
from shared.extensions.tasks import tasks

from .features import answers, calls, prompts, questions, resources, schemas
from .features import tasks as task_features
from .features.skills import Guide
from .settings import Settings

app = Server[None](
    Implementation(
        name="everything",
        title="Everything",
        version=__version__,
        description="Demonstrates every feature of the protocol, for testing clients.",
    ),
    instructions="A test bench for client authors: it does no useful work. Each tool, prompt and resource shows one "
    "feature of the protocol; its description says which. skill://try-a-client/SKILL.md says how to check a client.",
    settings=Settings,
    capabilities={"logging": {}},
    include=[
        answers.features,
        resources.features,
        questions.features,
        calls.features,
        task_features.features,
        prompts.features,
        questions.rounds,
        schemas.features,
    ],
    extensions=[skills(Guide()), tasks()],
)
app.log_level = None


@app.on_subscribe
async def _subscribe(_ctx: object, uri: str) -> str:
    if uri != resources.WATCHED.uri:
        raise ResourceNotFound(uri)
    return uri
