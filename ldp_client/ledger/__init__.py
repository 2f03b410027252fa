"""What an install has agreed to and spent."""
