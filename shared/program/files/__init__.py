"""Files that are written whole or not at all, by system calls on a name in a directory."""
