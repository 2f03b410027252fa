"""The HTTP server: public and admin listeners, the ingest queue, problem documents."""
