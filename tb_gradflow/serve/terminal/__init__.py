"""Reports, tables and explanations of causes as text for a terminal."""
