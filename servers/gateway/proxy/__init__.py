"""Another server behind this program: how to reach it, as which user, and if its tools match the accepted ones."""
