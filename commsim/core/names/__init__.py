"""Names of nodes, links and hosts: as they are written, found and made."""
