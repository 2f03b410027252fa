"""What only those need who receive uploads: a device does not, and its wheel leaves it out."""
