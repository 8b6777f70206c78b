"""The rules of the protocol, without I/O: nothing here awaits, reads a clock or opens a file."""
