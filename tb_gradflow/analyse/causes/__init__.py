"""Why a variable does not train: one file for each cause, in a folder for each family, and the precedence of causes."""
