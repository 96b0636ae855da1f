"""Groups of flags that several verbs share."""
