"""Exact methods for tables: votes counted (`counts`) or learned (`likelihood`); the posterior."""
