"""The shrinking estimator: what is believed of classes and values, given all reports and how noisy they are."""
