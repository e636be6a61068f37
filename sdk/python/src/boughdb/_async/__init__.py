"""The client in its asynchronous form.

`tools/make_sync.py` makes `_sync`, the blocking form, from these modules.
"""
