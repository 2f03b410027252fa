"""One store in several PostgreSQL databases."""
