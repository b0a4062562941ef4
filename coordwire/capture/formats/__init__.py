"""File formats of recorded traffic.

source.py   the input as a window of bytes that moves forwards, and the native walk over ordinary packets
pcap.py     packets of a pcap file, and the entrance for pcapng.py; frames as a pcap or pcapng file
compressed.py  what is inside of gzip, xz and zstd files
hexdump.py  frames from hex text and from the dumps of common tools
"""
