"""What the command line and the server share: settings, drafts, publishing, tokens."""
