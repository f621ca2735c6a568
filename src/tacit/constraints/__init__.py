"""Room 3: models of feasibility, from expert votes to a constraint at a confidence level."""
