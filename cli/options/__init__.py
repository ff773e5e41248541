"""Options and inputs that several commands share."""
