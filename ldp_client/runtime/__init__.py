"""What the platform gives: time, and locks that survive a fork."""
