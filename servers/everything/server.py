"""The bench server: one tool, prompt or resource for each thing that a client may meet on the wire.

Its domain is the protocol itself, so the files beside this one declare what they offer by themselves, on the one
`app`. Importing them is all that is left to do here; they are listed to clients in this order.
"""

from . import answers, changes, conversation, failures, progress, prompts, resources, rounds, schemas
from .app import app

__all__ = [
    "answers",
    "app",
    "changes",
    "conversation",
    "failures",
    "progress",
    "prompts",
    "resources",
    "rounds",
    "schemas",
]
