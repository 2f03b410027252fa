from postgres import own_postgres  # noqa: F401 - a fixture
