"""EXPERIMENTAL: a masked sum as a Flower app. What its masks do not do stands in docs/federation.md."""
