"""How findings speak: names of variables and ops, the user's code taken apart, and phrases that causes share."""
