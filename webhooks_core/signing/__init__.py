"""How deliveries are signed (`schemes`), and how a received request is verified, and why it fails."""
