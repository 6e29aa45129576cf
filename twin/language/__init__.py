"""Stand-in for Pulumi's Python language host, which a CLI built from Go modules lacks. See `server`."""
