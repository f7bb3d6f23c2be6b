"""Catches the first step whose gradient is not finite, and runs that step again to record it."""
