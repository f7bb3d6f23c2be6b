"""Programs that tests run in processes of their own: they need several devices, or several workers."""
