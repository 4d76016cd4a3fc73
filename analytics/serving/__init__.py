"""Lambda and Kappa over the same models: batch layer, speed layer, serving view, and replay."""
