"""Messages of every protocol, written the way their producers write them."""
