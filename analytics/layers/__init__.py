"""Gold computed from silver, by stream and by batch: Lambda, Kappa, and the proof that they are equal."""
