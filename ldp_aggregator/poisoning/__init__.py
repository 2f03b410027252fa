"""How far lying devices can move what is learned: a report can be made up, and no server can tell.

``reports`` bounds the estimates of one question, ``moments`` the means and variances, ``models`` all of a model.
"""
