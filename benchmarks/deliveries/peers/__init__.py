"""What people use in place of an engine: a task per delivery."""
