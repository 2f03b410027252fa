"""Exact counting: reports and shares are decoded and added up as integers. numpy only."""
