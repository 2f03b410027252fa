"""Commands for tables that somebody holds: training where the data is, and a node of a federated campaign."""
