"""The method `ca-icrl`, the paper's own: every expert votes by comparison with the query."""
