"""Clients with a planted flaw, and sound ones that only look odd; what an auditor of clients is tried on."""
