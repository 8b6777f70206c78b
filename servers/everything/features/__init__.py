"""The features of the test server, in a file for each part of the protocol."""

from shared import Context

Ctx = Context[None]
