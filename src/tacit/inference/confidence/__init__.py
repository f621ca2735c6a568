"""What a confidence level is: votes, the Beta belief over feasibility, and its quantile."""
