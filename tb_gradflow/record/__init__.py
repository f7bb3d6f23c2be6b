"""The records of a log and of a report. Standard library only."""
