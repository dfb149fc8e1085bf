"""What the benchmark of growth runs; nothing here runs in a serving instance."""
