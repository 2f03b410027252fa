"""What answers each page's request."""
