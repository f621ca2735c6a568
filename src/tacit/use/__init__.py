"""A rule at work elsewhere: the learned cost in any Gymnasium environment."""
