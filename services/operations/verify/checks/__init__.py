"""The checks of `till verify`: log, folds (of which views and stock are parts), money, flow and lake."""
