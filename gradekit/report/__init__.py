"""The report record and its pure renderings: record.py makes it, the others turn it into
text. docs/report.md has its fields."""
