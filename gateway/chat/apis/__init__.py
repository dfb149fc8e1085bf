"""The APIs that clients and model servers speak: what each sends, and how an answer is read and written."""
