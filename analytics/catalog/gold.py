"""The gold tables with every column in words. The functions of the same name in `analytics/models` compute them."""

from analytics.catalog.table import Column, DeltaType, Table, array, struct

MINUTES = Column(
    "minutes",
    array("timestamp"),
    "Minutes in which something happened to this row: tells an incremental refresh which files to read.",
)
EVENTS = Column("events", "long", "Number of events behind this row.")
CURRENCY = Column("currency", "string", "ISO 4217 code. A cart or an order has one currency.")


def _line(*more: Column) -> DeltaType:
    return array(
        struct(
            Column("sku", "string", "SKU of the product."),
            Column("name", "string", "Name of the product when it was put into the cart."),
            *more,
            Column("quantity", "integer", "Number of pieces."),
            Column("unit_price", "long", "Price of one piece, in minor units."),
            CURRENCY,
        )
    )


CART_LINES = Column("lines", _line(), "Contents of the cart, in the order in which products were first put in.")

CARTS = Table(
    "gold.carts",
    "One row per cart: its current contents, what they are worth, and what became of it.",
    (
        Column("cart_id", "string", "Id of the cart, a UUID."),
        Column("customer_id", "string", "Pseudonymous id of the customer."),
        Column("status", "string", "`open`, `checked_out`, or `abandoned` once the service has closed it."),
        Column("opened_at", "timestamp", "When the cart was opened."),
        Column("active_at", "timestamp", "Last action of the shopper."),
        Column("checked_out_at", "timestamp", "When the cart was checked out; null if it was not."),
        Column("closed_at", "timestamp", "When the service closed the cart as abandoned; null if it did not."),
        Column("order_id", "string", "Order that the cart became; null before the checkout."),
        CART_LINES,
        Column("pieces", "long", "Number of pieces in the cart."),
        Column("value", "long", "Value of the contents, in minor units."),
        CURRENCY,
        EVENTS,
        MINUTES,
    ),
    key=("cart_id",),
)

ORDERS = Table(
    "gold.orders",
    "One row per order, all services joined: status, price, payment, and the time of each step.",
    (
        Column("order_id", "string", "Id of the order, a UUID."),
        Column("cart_id", "string", "Cart that was checked out."),
        Column("customer_id", "string", "Pseudonymous id of the customer."),
        Column("payment_id", "string", "Payment of the order; null before one is requested."),
        Column("status", "string", "`placed`, `reserved`, `in_review`, `confirmed` or `cancelled`."),
        Column("reason", "string", "Why the order was cancelled: `out_of_stock`, `payment_declined`, `fraud`, ..."),
        Column("payment_status", "string", "Last step of the payment, such as `authorized`, `captured` or `refunded`."),
        Column(
            "lines",
            _line(Column("product_name", "string", "Name of the product in the catalog when the order was placed.")),
            "Ordered products, as placed.",
        ),
        Column("items", "long", "Number of ordered pieces."),
        Column("total", "long", "Total price, in minor units."),
        CURRENCY,
        Column("captured", "long", "Money taken from the customer, in minor units."),
        Column("refunded", "long", "Money given back, in minor units."),
        Column("reference", "string", "The payment provider's reference for the capture or the authorization."),
        Column("refund_reference", "string", "The payment provider's reference for the refund."),
        Column("pieces_reserved", "long", "Pieces that were reserved in stock."),
        Column("pieces_sold", "long", "Reserved pieces that were sold."),
        Column("pieces_released", "long", "Reserved pieces that became available again."),
        Column("pieces_returned", "long", "Sold pieces that came back after a cancellation."),
        Column("cart_opened_at", "timestamp", "When the cart was opened."),
        Column("checked_out_at", "timestamp", "When the cart was checked out."),
        Column("placed_at", "timestamp", "When the order was placed."),
        Column("reserved_at", "timestamp", "When all lines were reserved and the payment was requested."),
        Column("held_at", "timestamp", "When the order was held for a fraud review."),
        Column("authorized_at", "timestamp", "When the provider authorized the payment."),
        Column("confirmed_at", "timestamp", "When the order was confirmed."),
        Column("captured_at", "timestamp", "When the money was taken."),
        Column("cancelled_at", "timestamp", "When the order was cancelled."),
        Column("refunded_at", "timestamp", "When the money was given back."),
        Column("shopping_ms", "long", "Milliseconds from the opening of the cart to its checkout."),
        Column("reserving_ms", "long", "Milliseconds from the order to the reservation of its last line."),
        Column("deciding_ms", "long", "Milliseconds from the order to its confirmation or cancellation."),
        Column("capturing_ms", "long", "Milliseconds from the confirmation to the capture of the money."),
        EVENTS,
        MINUTES,
    ),
    key=("order_id",),
)

SALES_PER_MINUTE = Table(
    "gold.sales_per_minute",
    "One row per minute and currency: orders, pieces and money. Cancellations are booked when they happen.",
    (
        Column("minute", "timestamp", "Start of the minute."),
        CURRENCY,
        Column("orders", "long", "Orders confirmed in this minute."),
        Column("items", "long", "Pieces of these orders."),
        Column("revenue", "long", "Total of these orders, in minor units."),
        Column("cancelled_orders", "long", "Confirmed orders that were cancelled in this minute."),
        Column("cancelled_items", "long", "Pieces of the cancelled orders."),
        Column("cancelled_revenue", "long", "Total of the cancelled orders, in minor units."),
        Column("captured", "long", "Money taken in this minute, in minor units."),
        Column("refunded", "long", "Money given back in this minute, in minor units."),
        Column("net_revenue", "long", "`revenue` less `cancelled_revenue`."),
    ),
    key=("minute", "currency"),
)

PRODUCT_SALES = Table(
    "gold.product_sales",
    "One row per day, product and currency: carts, orders, pieces and money, and what of these came back.",
    (
        Column("day", "date", "Day in UTC."),
        Column("sku", "string", "SKU of the product."),
        CURRENCY,
        Column("carts", "long", "Carts that the product was first put into on this day."),
        Column("orders", "long", "Order lines confirmed on this day."),
        Column("units", "long", "Pieces sold."),
        Column("revenue", "long", "Value of the pieces sold, in minor units."),
        Column("returned_units", "long", "Pieces of confirmed orders that were cancelled on this day."),
        Column("returned_revenue", "long", "Value of these pieces, in minor units."),
    ),
    key=("day", "sku", "currency"),
)

FUNNEL = Table(
    "gold.funnel",
    "One row per hour in which carts were opened: how many of them were filled, checked out, paid and confirmed.",
    (
        Column("hour", "timestamp", "Hour in which the carts were opened."),
        Column("opened", "long", "Carts opened in this hour."),
        Column("with_items", "long", "Carts into which something was put."),
        Column("checked_out", "long", "Carts that were checked out."),
        Column("placed", "long", "Carts that became an order."),
        Column("reserved", "long", "Orders whose lines were all reserved."),
        Column("authorized", "long", "Orders whose payment was authorized."),
        Column("confirmed", "long", "Orders that were confirmed."),
        Column("cancelled", "long", "Orders that were cancelled, for whatever reason."),
        Column("cancelled_out_of_stock", "long", "Orders cancelled because a product was out of stock."),
        Column("cancelled_payment_declined", "long", "Orders cancelled because the payment was declined."),
        Column("cancelled_fraud", "long", "Orders cancelled on suspicion of fraud."),
        Column("cancelled_customer", "long", "Orders cancelled by the customer or by support."),
        Column("cancelled_timeout", "long", "Orders cancelled because no decision came in time."),
        Column("rate_with_items", "double", "`with_items` / `opened`."),
        Column("rate_checked_out", "double", "`checked_out` / `opened`."),
        Column("rate_confirmed", "double", "`confirmed` / `checked_out`."),
        Column("conversion", "double", "`confirmed` / `opened`."),
    ),
    key=("hour",),
)

ABANDONED_CARTS = Table(
    "gold.abandoned_carts",
    "One row per visit that ended with something in the cart. Abandoned once `abandoned_at` has passed.",
    (
        Column("cart_id", "string", "Id of the cart, a UUID."),
        Column("session", "integer", "Number of the visit to this cart, from 1."),
        Column("customer_id", "string", "Pseudonymous id of the customer."),
        Column("started_at", "timestamp", "First action of the visit."),
        Column("last_activity_at", "timestamp", "Last action of the visit."),
        Column(
            "abandoned_at", "timestamp", "From this moment on, half an hour after the last action, it is abandoned."
        ),
        Column("moves", "integer", "Number of actions in the visit."),
        CART_LINES,
        Column("pieces", "long", "Number of pieces left in the cart."),
        Column("value", "long", "Value of the contents, in minor units."),
        CURRENCY,
        Column("came_back", "boolean", "Whether another visit to the cart followed."),
        Column("bought_later", "boolean", "Whether the cart was checked out in the end."),
    ),
    key=("cart_id", "session"),
)

SUBJECT = (
    Column("subject_kind", "string", "`customer` or `token` (a means of payment)."),
    Column("subject", "string", "Id of the customer, or the token."),
)
WINDOW = (
    Column("window_start", "timestamp", "Start of the hopping window."),
    Column("window_end", "timestamp", "End of the hopping window."),
)

FRAUD_FEATURES = Table(
    "gold.fraud_features",
    "One row per customer or payment token and hopping window: payments, declines, amounts against their history.",
    (
        *SUBJECT,
        *WINDOW,
        Column("attempts", "long", "Payments requested."),
        Column("declines", "long", "Payments that the provider declined."),
        Column("tokens", "long", "Different tokens that a customer used; null for a token."),
        Column("accounts", "long", "Different customers that used a token; null for a customer."),
        Column("purchases", "long", "Payments captured."),
        Column("largest", "long", "Amount of the most unusual payment, in minor units."),
        Column("currency", "string", "Currency of that payment."),
        Column("usual", "long", "What the subject usually paid before, in minor units; null without enough history."),
        Column("times_usual", "long", "How many times the usual amount that payment was; null without enough history."),
        MINUTES,
    ),
    key=("subject_kind", "subject", "window_start"),
)

FRAUD_ALERTS = Table(
    "gold.fraud_alerts",
    "One row per rule and level that a customer or payment token reached in a window, with the reason in words.",
    (
        Column("alert_id", "string", "Id of the alert, a UUIDv5 of its content."),
        *SUBJECT,
        Column("customer_id", "string", "The customer; empty if the alert is about a token."),
        Column("payment_token", "string", "The token; empty if the alert is about a customer."),
        Column("rule", "string", "Name of the rule in rules.toml."),
        Column("at_least", "long", "Value of the measure from which this level is reached."),
        Column("value", "long", "Value that the measure had at the end of the window."),
        Column("score", "integer", "How suspicious this is, from 0 to 100."),
        Column("reasons", array("string"), "The reason in words."),
        *WINDOW,
        Column("at", "timestamp", "Time of the alert: the end of the window, on which all computations agree."),
        Column("reached_at", "timestamp", "When the measure reached the level."),
    ),
    key=("subject_kind", "subject", "window_start", "alert_id"),
)

GOLD = (
    CARTS,
    ORDERS,
    SALES_PER_MINUTE,
    PRODUCT_SALES,
    FUNNEL,
    ABANDONED_CARTS,
    FRAUD_FEATURES,
    FRAUD_ALERTS,
)
"""All gold tables, in the order of `analytics.models.GOLD`."""
