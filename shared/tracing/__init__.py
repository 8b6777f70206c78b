"""Which trace the work at hand belongs to, and what of it took how long. Nothing here knows who collects that."""
