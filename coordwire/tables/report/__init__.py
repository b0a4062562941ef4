"""The HTML report of a run, one file.

page.py            the page: its sections, and what could not be read
group_section.py   groups over time, rebalances, lag
error_section.py   error codes by API, refused frames, quarantine
plots.py           the plots, as SVG
style_sheet.py     colours and layout
escaping.py        untrusted texts in HTML
summary.py         what the report is made of: the run's summary, and bounded parts of the tables
"""
