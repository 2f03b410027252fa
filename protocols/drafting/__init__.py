"""From a draft to a document: what a server does once, and a device never."""
