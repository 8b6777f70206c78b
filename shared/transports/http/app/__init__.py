"""The servers of one listener as an ASGI application: guards, admission, routes, cards and probes."""
