"""The journal of changes, with the earlier contents of files."""
