"""A session on a transport: opened, kept alive, made anew where it was lost; and what it tells of changes."""
