"""What a tally that forgets who sent what reveals of one device: rows of mechanisms, and the bound they go into."""
