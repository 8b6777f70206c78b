"""The protocol's types as pydantic models: those of the newest version, which the older ones are fitted from.

Python names are snake_case, wire names camelCase. Building a validator costs more than defining a class, so
it waits for the first use (`defer_build`); a server that never sees a prompt never builds one.
"""
