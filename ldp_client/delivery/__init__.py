"""From the queue to the server: what to send when, and what became of it. Does no network I/O of its own."""
