"""Reports for programs and web pages: CI servers, editors, test summaries, issues.

Each format is one module; `batch` is their input.
"""
