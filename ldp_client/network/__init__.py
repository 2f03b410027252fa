"""HTTP: what a request is, how one is made with the standard library, and the aggregator behind it."""
