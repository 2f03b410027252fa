"""Pages for people: the operator's dashboard on the admin listener, and a public page per campaign."""
