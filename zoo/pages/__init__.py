"""Pages: self-contained HTML documents, which work offline."""
