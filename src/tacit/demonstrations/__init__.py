"""Room 2: what the experts did."""
