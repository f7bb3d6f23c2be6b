"""What experiments with the step say about a finding."""
