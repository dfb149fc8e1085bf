"""What the catalogue benchmark compares; nothing here runs in a serving instance."""
