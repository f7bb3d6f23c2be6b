"""The words of findings: names of variables and ops, expressions from the user's code, phrases that causes share."""
