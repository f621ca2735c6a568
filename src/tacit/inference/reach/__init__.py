"""The method `reach`: limits on single numbers, counted from how far experts and policies go."""
