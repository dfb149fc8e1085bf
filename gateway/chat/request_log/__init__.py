"""The request log: prompts and answers of the models and tenants that the configuration names."""
