"""What the replicas of one server share."""
