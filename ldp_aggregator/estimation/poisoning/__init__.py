"""How far made-up reports can move an estimate."""
