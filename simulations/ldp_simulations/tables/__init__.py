"""People as tables: files, scikit-learn's and the benchmark data sets, and drafts derived from them."""
