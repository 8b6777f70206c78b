"""Tools that only the SQLite server has."""
