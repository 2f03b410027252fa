"""The embedded store: one SQLite file, and the ids of reports in sorted runs beside it.

The ids are a log-structured set whose cost per report grows as the logarithm of what it holds. What was inserted lately
is in memory, sorted (``keys.py``), and in the database that has the counts, where it is durable. From time to time it
is written as a *run*, an immutable sorted file (``run_files.py``), and runs of about the same size are merged into a
larger one, as in O'Neil et al., "The log-structured merge-tree" (1996). A filter in front of each run says of nearly
every new id that it is not in there, so that a commit reads hardly any file.
"""
