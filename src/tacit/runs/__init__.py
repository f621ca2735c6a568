"""How a run is described, kept and continued."""
