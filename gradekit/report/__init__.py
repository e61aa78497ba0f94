"""The report record and its pure renderings: record.py makes it, the others text. docs/report.md has its fields."""
