"""What the experts did: episodes, and the files that they are read from and written to."""
