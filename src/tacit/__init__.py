"""Learn the unwritten rules experts follow, at a confidence level you choose."""
