"""The storage of an install's secret, its ledger and its queue."""
