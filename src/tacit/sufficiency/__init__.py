"""Room 7: are there enough demonstrations?"""
