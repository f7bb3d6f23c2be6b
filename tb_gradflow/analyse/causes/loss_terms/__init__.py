"""The loss is a sum, and its terms do not fit together: one teaches nothing, dominates, or conflicts with another."""
