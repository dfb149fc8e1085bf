"""What bench_deliveries runs; nothing here runs in a serving instance."""
