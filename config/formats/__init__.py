"""How times and dates are written wherever a page names no format of its own."""
