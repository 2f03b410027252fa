"""From estimates to models: training, the Naive Bayes classifier, series, projections."""
