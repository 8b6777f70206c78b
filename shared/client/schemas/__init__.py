"""JSON Schemas that a server wrote: what they cost, and what they are used to check."""
