"""Another server behind this program: how to reach it, as which user, and whether its tools match the accepted
ones."""
