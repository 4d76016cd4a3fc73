"""What must always hold, checked from the stores: a module for each invariant. See docs/verify.md."""
