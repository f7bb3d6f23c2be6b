"""A gradient arrives, but it is not the intended one."""
