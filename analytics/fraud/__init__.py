"""Fraud: what is counted of customers and means of payment, which counts are suspicious, and the alerts of them."""
