"""Reports and uploads: one valid encoding each."""
