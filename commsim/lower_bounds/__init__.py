"""How fast nothing can be: lower bounds for any network and operation."""
