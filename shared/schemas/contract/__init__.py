"""The schema contract as files: read, checked, compared and locked without a registry or a database."""
