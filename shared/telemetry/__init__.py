"""What operators see of a running server: logs, the audit log, metrics, traces, health and readiness."""
