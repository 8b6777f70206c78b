"""Changes files on disk. No file is left partly written, and no data is lost."""
