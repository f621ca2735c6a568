"""The methods that CA-ICRL is compared with, one file each."""
