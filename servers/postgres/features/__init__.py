"""Tools and resources that only the PostgreSQL server has."""
