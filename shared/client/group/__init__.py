"""Several servers at once, each isolated from the others."""
