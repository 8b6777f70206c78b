"""The bundle as a whole: its catalog and its commands."""
