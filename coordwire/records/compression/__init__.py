"""The compression codecs of record batches, with bounded output.

codecs.py   which library serves which codec, and its limits
frames.py   the formats around compressed blocks: LZ4's header checksum, xerial's framing, zstd's frames
"""

from coordwire.records.compression.codecs import CODECS, Codec, compress, decompress, missing_codecs

__all__ = ["CODECS", "Codec", "compress", "decompress", "missing_codecs"]
