"""Tasks: tables, simulators, worlds written in JAX, and any Gymnasium environment."""
