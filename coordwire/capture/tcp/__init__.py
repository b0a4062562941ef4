"""From packets to byte streams.

link.py        link layer, IP and TCP headers: packets -> TCP segments
reassembly.py  TCP segments -> the bytes of each flow, in order, with what is missing
lone_packets.py packets that were pasted as hex, without a capture file, to the frames in them
"""
