"""The client in its blocking form, made from `_async`."""
