"""The questions to a client, by whom and how often, and the answers."""
