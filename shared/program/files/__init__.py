"""Files that are written whole or not at all, by what each system is asked to do with a name in a directory."""
