"""Everything around the services: command line, local stack, simulation, locked jars, containers."""
