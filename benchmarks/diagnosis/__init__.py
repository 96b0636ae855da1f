"""Floors and causes held against public tables and cases, and what watching a running job costs."""
