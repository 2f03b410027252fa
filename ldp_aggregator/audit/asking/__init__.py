"""What a client is asked, by whom and how often, and what comes back."""
