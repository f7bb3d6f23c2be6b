"""Where records lie: event files, their writer and their readers. Never imports TensorFlow."""
