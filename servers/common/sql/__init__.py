"""The parts that the SQLite and PostgreSQL servers share: everything that does not depend on the database engine."""
