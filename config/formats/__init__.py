"""The formats of times and dates on pages that name no other format."""
