"""Reports for programs: build servers, editors, test summaries. One format, one module; `batch` says what they get."""
