"""Commands that are larger than a screen: their arguments here, their printing beside them."""
