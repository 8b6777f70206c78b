"""The parts that the SQL servers share: everything except the database engines."""
