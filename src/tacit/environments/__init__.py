"""Room 1: where trajectories come from."""
