"""The protocol's use of HTTP, without a socket."""
