"""Room 6: how good is it, how sure are we."""
