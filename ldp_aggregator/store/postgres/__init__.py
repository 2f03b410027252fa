"""The store on PostgreSQL, for any number of instances."""
