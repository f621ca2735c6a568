"""Room 4: act as well as possible under a cost."""
