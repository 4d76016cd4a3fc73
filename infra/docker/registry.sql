-- Run once by PostgreSQL's image on an empty volume: the registry's own database beside the shop's.
CREATE DATABASE registry;
