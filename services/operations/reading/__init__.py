"""Opens the stores of services for reading, and folds their streams into rows."""
