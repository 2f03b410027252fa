"""The room that the command line and the server share: settings, drafts, publishing, tokens."""
