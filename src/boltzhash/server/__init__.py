"""The HTTP service and its page: ``boltzhash serve``. A leaf: nothing else imports it."""
