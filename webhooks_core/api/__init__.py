"""Subscriptions over HTTP, as the products share them."""
