"""Commands that run and keep a store: serve, tokens, checks, merging, backups."""
