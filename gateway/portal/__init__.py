"""The portal of tenants: links that open it, sessions, and the pages of webhooks in a frame."""
