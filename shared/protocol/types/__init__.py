"""The protocol's types as pydantic models, in the newest version's form, from which older forms are derived.

Python names are snake_case, wire names camelCase. Building a validator costs more than defining a class, so it is
built at first use (`defer_build`); a server that never handles a prompt never builds one for it.
"""
