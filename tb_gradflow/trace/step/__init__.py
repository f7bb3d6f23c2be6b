"""What is measured of one step, on one device or on many."""
