"""Methods for tables, exact: votes counted (`counts`) or learned (`likelihood`), and the exact posterior."""
