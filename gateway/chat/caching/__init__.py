"""Answers of models that are kept and given again: opt-in for each entry of `models`."""
