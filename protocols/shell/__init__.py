"""What the three command lines have in common; no part of the wheel for devices."""
