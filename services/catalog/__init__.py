"""The catalog service: products, prices and stock, one stream `stock:SKU` per product."""
