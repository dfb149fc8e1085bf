"""What bench_catalog compares; nothing here runs in a serving instance."""
