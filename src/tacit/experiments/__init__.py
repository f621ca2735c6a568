"""Room 9: the experiments behind the figures and tables; one command runs each."""
