"""What a log says, and what a report says. Standard library only."""
