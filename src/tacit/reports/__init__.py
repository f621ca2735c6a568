"""Room 8: figures and one self-contained HTML page."""
