"""How messages travel: each transport is one file, imported only when it is chosen."""
