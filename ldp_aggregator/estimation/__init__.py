"""From a tally to numbers with errors: unbiased estimates, variances, intervals, and how far liars move them."""
