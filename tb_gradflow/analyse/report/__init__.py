"""From verdicts to the findings and the summary of a report, and how two reports differ."""
