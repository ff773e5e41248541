"""The terminal: rendering, progress, streams and exit statuses."""
