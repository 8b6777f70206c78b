"""The protocol's rules for HTTP, without I/O."""
