"""Room 9: the paper's figures and tables, and ours, as experiments that one command runs."""
