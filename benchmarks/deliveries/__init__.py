"""What the deliveries benchmark runs; nothing here runs in a serving instance."""
