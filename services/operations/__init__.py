"""The library behind the operators' commands of `till`: it reads the stores of all services, and rebuilds views."""
