"""What concerns the bundle as a whole: its catalog, its commands, and what they need."""
