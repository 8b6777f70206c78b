"""The protocol's types as pydantic models, in the form of the newest version; `shaping.py` derives older forms.

Python names are in snake_case, wire names in camelCase. Building the validator of a model costs more than defining
its class, so it is built at first use (`defer_build`): a server that never handles a prompt never builds the
validator for prompts.
"""
