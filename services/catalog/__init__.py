"""Products, their prices and their stock: one stream a SKU."""
