"""Ten questions of an analyst, each with its SQL."""

from typing import NamedTuple

PRODUCT_NAMES = """\
    SELECT line.sku, any_value(line.product_name) AS name
    FROM (SELECT unnest(lines) AS line FROM gold.orders)
    GROUP BY line.sku"""


class Question(NamedTuple):
    title: str
    remark: str
    sql: str


QUESTIONS = (
    Question(
        "How much have we sold, and how much of it came back?",
        "A cancellation is booked in the minute in which it happens, so earlier minutes never change. Amounts are "
        "stored in minor units (cents).",
        """\
SELECT currency,
       sum(orders) AS orders,
       sum(items) AS pieces,
       (sum(revenue) / 100)::DECIMAL(18, 2) AS revenue,
       (sum(cancelled_revenue) / 100)::DECIMAL(18, 2) AS taken_back,
       (sum(net_revenue) / 100)::DECIMAL(18, 2) AS net
FROM gold.sales_per_minute
GROUP BY currency
ORDER BY orders DESC""",
    ),
    Question(
        "When were we busiest?",
        "Tumbling windows of a minute. For hours: `date_trunc('hour', minute)`.",
        """\
SELECT minute, sum(orders) AS orders, (sum(revenue) / 100)::DECIMAL(18, 2) AS revenue
FROM gold.sales_per_minute
GROUP BY minute
ORDER BY orders DESC, minute
LIMIT 5""",
    ),
    Question(
        "Which products sell, and which are only looked at?",
        "`per_cart` is the share of the carts with a product that became an order with it.",
        f"""\
WITH names AS (
{PRODUCT_NAMES}
)
SELECT sku, name, sum(units - returned_units) AS pieces,
       (sum(revenue - returned_revenue) / 100)::DECIMAL(18, 2) AS revenue,
       sum(carts) AS carts,
       round(sum(orders) / sum(carts), 2) AS per_cart
FROM gold.product_sales LEFT JOIN names USING (sku)
GROUP BY sku, name
ORDER BY revenue DESC, sku
LIMIT 8""",
    ),
    Question(
        "Where do we lose shoppers on the way?",
        "All hours together. Each step is a column of `gold.funnel`, here turned into rows.",
        """\
WITH steps AS (
    SELECT unnest(['opened', 'with items', 'checked out', 'reserved', 'authorized', 'confirmed']) AS step,
           unnest([sum(opened), sum(with_items), sum(checked_out),
                   sum(reserved), sum(authorized), sum(confirmed)]) AS carts
    FROM gold.funnel
)
SELECT step, carts, round(100 * carts / max(carts) OVER (), 1) AS percent
FROM steps
ORDER BY carts DESC""",
    ),
    Question(
        "What lies in abandoned carts, and do people come back for it?",
        "A row is a visit that ended with something in the cart. It counts as abandoned once half an hour has passed "
        "without an action, hence the comparison with the clock; without it, carts whose shoppers may still return "
        "are included.",
        """\
SELECT currency,
       count(*) AS visits,
       sum(pieces) AS pieces,
       (sum(value) / 100)::DECIMAL(18, 2) AS value,
       count(*) FILTER (abandoned_at <= now()) AS abandoned_by_now,
       count(*) FILTER (came_back) AS came_back,
       count(*) FILTER (bought_later) AS bought_later
FROM gold.abandoned_carts
GROUP BY currency""",
    ),
    Question(
        "Why are orders cancelled?",
        "Every order is one row of `gold.orders`, with what cart, order, payment and stock recorded about it.",
        """\
SELECT status, reason, count(*) AS orders, (sum(total) / 100)::DECIMAL(18, 2) AS worth,
       round(100 * count(*) / sum(count(*)) OVER (), 1) AS percent
FROM gold.orders
GROUP BY status, reason
ORDER BY orders DESC, status, reason""",
    ),
    Question(
        "How long does a customer wait for the answer?",
        "From the order to its confirmation or cancellation, in milliseconds.",
        """\
SELECT status,
       count(deciding_ms) AS orders,
       quantile_cont(deciding_ms, 0.5)::INT AS p50_ms,
       quantile_cont(deciding_ms, 0.95)::INT AS p95_ms,
       max(deciding_ms) AS slowest_ms
FROM gold.orders
WHERE deciding_ms IS NOT NULL
GROUP BY status
ORDER BY status""",
    ),
    Question(
        "What is put into carts and taken out again?",
        "From silver, which has a struct column for each event type, null in rows of other types.",
        """\
SELECT coalesce(item_added.sku, item_removed.sku) AS sku,
       count(item_added) AS added,
       count(item_removed) AS removed,
       round(count(item_removed) / count(item_added), 2) AS rate
FROM silver.cart_events
WHERE event_type IN ('ItemAdded', 'ItemRemoved')
GROUP BY 1
HAVING removed > 0
ORDER BY rate DESC, added DESC, sku
LIMIT 5""",
    ),
    Question(
        "Who looks like fraud, and why?",
        "An alert is a level of a rule that was reached in a window of time. Customers are pseudonyms.",
        """\
SELECT rule, reasons[1] AS why, score, count(DISTINCT subject) AS subjects, max(value) AS most, max(reached_at) AS last
FROM gold.fraud_alerts
GROUP BY rule, why, score
ORDER BY score DESC, subjects DESC, rule""",
    ),
    Question(
        "Does the money add up?",
        "Confirmed orders of the order service, compared with what payment took and gave back. `difference` is what is "
        "still on its way: 0 once every payment has ended.",
        """\
SELECT currency,
       (sum(total) FILTER (status = 'confirmed') / 100)::DECIMAL(18, 2) AS confirmed,
       (sum(captured) / 100)::DECIMAL(18, 2) AS captured,
       (sum(refunded) / 100)::DECIMAL(18, 2) AS refunded,
       ((sum(total) FILTER (status = 'confirmed') - sum(captured) + sum(refunded)) / 100)::DECIMAL(18, 2) AS difference
FROM gold.orders
GROUP BY currency
ORDER BY currency""",
    ),
)
