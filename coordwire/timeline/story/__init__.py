"""A group's story: what went wrong, its rebalances, who was in, and a line an event.

    collected.py        the events that stories are made of
    contents.py         what a story says, whatever shows it
    group_block.py      one group's block of lines
    overview.py         the story on a terminal: incidents, a row a rebalance, who is in at the end
    story_page.py       the story as HTML; markup.py: untrusted texts and tables in it
    lanes.py            the story as a picture: members over time, rebalances, gaps
    incidents.py        what went wrong; admin_deeds.py: what others did; incident.py: one of them
    rebalance_table.py  a row a rebalance
    event_list.py       events as a list, equal ones as one line
    event_lines.py      a line an event; commit_lines.py: those of commits
    story_links.py      what an event refers to elsewhere in the story
    member_numbers.py   short numbers for members
    wording.py          the words: causes, lengths of time, names, the verdict on a group

Rules: a line is a list of pieces, each a text with the name of its style; nothing here knows a terminal.
"""

from coordwire.timeline.story.group_block import story_lines

__all__ = ["story_lines"]
