"""What keeps a lake in order: finding what nobody needs."""
