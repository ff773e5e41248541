"""Self-contained HTML pages that work offline."""
