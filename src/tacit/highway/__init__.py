"""Driving among recorded traffic: recordings -> scenarios -> step -> observation."""
