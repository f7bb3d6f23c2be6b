"""Reports for programs: CI servers, editors, test summaries. Each format is one module; `batch` is their input."""
