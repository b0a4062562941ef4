"""The compression codecs of record batches, with bounded output.

codecs.py     which library serves which codec, and its limits
lz4frame.py   the header checksum of LZ4 frames, which Kafka computed wrong before 0.10
xerial.py     the framing that Java's snappy library puts around blocks
zstdframe.py  the end and the largest size of a zstd frame, from its block headers
"""

from coordwire.records.compression.codecs import CODECS, Codec, compress, decompress, missing_codecs

__all__ = ["CODECS", "Codec", "compress", "decompress", "missing_codecs"]
