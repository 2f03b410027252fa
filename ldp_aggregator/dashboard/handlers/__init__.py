"""The handlers of the pages' requests."""
