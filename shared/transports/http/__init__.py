"""Streamable HTTP: the endpoint, its sessions and streams, and a client."""
