"""What is drawn and written from the tables of the figures."""
