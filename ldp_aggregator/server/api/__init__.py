"""The HTTP API: every operation as a row, read by the routes and by the OpenAPI document."""
