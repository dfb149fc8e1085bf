"""The rules of `policies:`: what requests and answers may hold, and what is masked in them."""
