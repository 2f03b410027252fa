"""Many seeded trials of a campaign on one table, and what is known without asking anyone."""
