"""Room 5: from demonstrations to a constraint; one file is the algorithm box of one paper."""
