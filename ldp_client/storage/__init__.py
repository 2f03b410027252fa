"""Where an install keeps its secret, its ledger and its queue."""
