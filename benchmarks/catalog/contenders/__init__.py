"""The same operations built in other ways: one module each, with a Django view named `view`."""
