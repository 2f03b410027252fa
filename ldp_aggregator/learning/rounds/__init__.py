"""The rounds of a study after its first: which model is the best, and what to ask more about."""
