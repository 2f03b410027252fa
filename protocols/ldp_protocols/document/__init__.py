"""The campaign document: drafts, questions, their verification."""
