"""The features of the bench, in a file for each side of the protocol."""

from shared import Context

Ctx = Context[None]
