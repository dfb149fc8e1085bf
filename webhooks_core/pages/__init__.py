"""The pages on which owners see and repair their webhooks; they know nothing of a product."""
