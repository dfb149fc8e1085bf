"""The GraphQL schema: the contract's types and operations, and what was added after them."""
