"""The HTML report of a run, one file.

page.py            the page: its sections, and what could not be read
group_section.py   groups over time, rebalances, lag
plots.py           plots as SVG; the page around them is of `timeline.story.markup`
summary.py         what the report is made of: the run's summary, and bounded parts of the tables
"""
