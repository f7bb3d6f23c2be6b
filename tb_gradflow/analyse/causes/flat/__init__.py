"""A function is flat at this step's values: its slope is zero or almost zero."""
