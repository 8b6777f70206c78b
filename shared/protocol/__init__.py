"""The protocol without I/O: values and rules. Nothing here awaits, reads a clock or opens a file."""
