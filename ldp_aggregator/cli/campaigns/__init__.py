"""Commands about campaigns: their life, their estimates, their models."""
