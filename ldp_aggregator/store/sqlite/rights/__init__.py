"""Who may do what, who did what, and what publishers have signed: the statements."""
