"""The loss is a sum, and its terms do not go together: one teaches nothing, drowns another, or pulls against it."""
