"""Everything that the SQL servers share, that is, all but the database engines."""
