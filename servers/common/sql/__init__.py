"""The parts that all SQL servers share: everything but the database engines."""
