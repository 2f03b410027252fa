"""The statements that both databases share, each once, over a connection of five methods."""
