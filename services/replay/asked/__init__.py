"""Commands, found again from the events they led to: for each service the inverse of its API, deadlines and errands.

What is not asked but heard (a reaction) is found from the event that was heard, by the service's own `react`.
"""
