"""Files beneath directories that were allowed, and nothing outside them: the only place that knows descriptors."""
