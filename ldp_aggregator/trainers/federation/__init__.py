"""Several nodes, one model: shares, their state at the server, gossip, and noise that nodes add up together."""
