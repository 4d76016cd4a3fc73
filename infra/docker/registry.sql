-- PostgreSQL's image runs this once on an empty volume: the registry's database next to the shop's.
CREATE DATABASE registry;
