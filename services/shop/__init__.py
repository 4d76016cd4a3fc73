"""The shop: all services in one process, behind one port."""
