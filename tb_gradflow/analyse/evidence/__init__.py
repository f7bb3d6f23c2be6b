"""What a cause is judged by: the suspect op, and what is known of the values around it."""
