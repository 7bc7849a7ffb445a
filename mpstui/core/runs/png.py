"""Decodes a PNG with the standard library alone, scaled to fit a box: a terminal shows only a few hundred pixels."""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import mul, sub
from typing import NamedTuple

from .images import chunks

MOST_BYTES = 6 << 20
"""Limit on the decompressed size of a PNG: every byte is processed, at a few million per second."""
MOST_COLOURS, _MANY = 240, 4096
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_GREY, _OF_PALETTE = 0, 3
Colour = tuple[int, int, int]


class Pixels(NamedTuple):
    """Lines from the top, three bytes per pixel: red, green, blue."""

    width: int
    height: int
    lines: list[bytes]


class Paletted(NamedTuple):
    """Lines from the top, one byte per pixel: the index of its colour."""

    width: int
    height: int
    palette: tuple[Colour, ...]
    lines: tuple[bytes, ...]


class _Head(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int
    compression: int
    filter: int
    interlaced: int


def decoded(data: bytes, box: tuple[int, int], ground: Colour) -> Pixels:
    """Return the pixels of a PNG, scaled to fit a box (width, height); shrinking averages pixels.

    Args:
        ground: the colour behind transparent pixels.

    Raises:
        ValueError: the PNG is damaged or of an unsupported kind; the message says why.
    """
    pieces = [(kind, data[start:end]) for kind, start, end in chunks(data)]
    if not pieces or len(pieces[0][1]) != 13:
        raise ValueError("it is damaged (it does not begin with its size)")
    head = _Head(*struct.unpack(">IIBBBBB", pieces[0][1]))
    if head.depth not in _DEPTHS.get(head.colour, ()) or head.interlaced:
        raise ValueError("it is interlaced" if head.interlaced else "it is of an unknown kind")
    bits = _CHANNELS[head.colour] * head.depth
    line_bytes = (head.width * bits + 7) // 8
    if (line_bytes + 1) * head.height > MOST_BYTES:
        raise ValueError(f"its {head.width} x {head.height} pixels are more than a terminal is given")
    packed = b"".join(piece for kind, piece in pieces if kind == b"IDAT")
    try:
        whole = zlib.decompressobj().decompress(packed, (line_bytes + 1) * head.height)
    except zlib.error as error:
        raise ValueError(f"it is damaged ({error})") from None
    if len(whole) < (line_bytes + 1) * head.height:
        raise ValueError("it ends too early")
    told = dict(pieces[::-1])
    channels = _channels(head, _lines(whole, line_bytes, max(1, bits // 8)), told.get(b"PLTE"), told.get(b"tRNS", b""))
    return _scaled(head, channels, box, ground)


def _lines(whole: bytes, line_bytes: int, step: int) -> Iterator[bytes]:
    """Yield the lines with their filters undone; a filter stores a line as differences (PNG, chapter 9)."""
    above = bytes(line_bytes)
    for at in range(0, len(whole), line_bytes + 1):
        kind, line = whole[at], bytearray(whole[at + 1 : at + 1 + line_bytes])
        if kind == 1:
            for place in range(step):
                line[place::step] = bytes([value & 255 for value in accumulate(line[place::step])])
        elif kind == 2:
            line = bytearray([(value + up) & 255 for value, up in zip(line, above, strict=True)])
        elif kind == 3:
            for place, (value, up) in enumerate(zip(line, above, strict=True)):
                left = line[place - step] if place >= step else 0
                line[place] = (value + (left + up) // 2) & 255
        elif kind == 4:
            _undo_paeth(line, above, step)
        elif kind:
            raise ValueError("it is damaged (a line is of an unknown kind)")
        above = bytes(line)
        yield above


def _undo_paeth(line: bytearray, above: bytes, step: int) -> None:
    for place in range(min(step, len(line))):
        line[place] = (line[place] + above[place]) & 255
    for place in range(step, len(line)):
        left, up, corner = line[place - step], above[place], above[place - step]
        to_left, to_up = up - corner, left - corner
        to_corner = abs(to_left + to_up)
        to_left, to_up = abs(to_left), abs(to_up)
        near = left if to_left <= to_up and to_left <= to_corner else up if to_up <= to_corner else corner
        line[place] = (line[place] + near) & 255


def _channels(head: _Head, lines: Iterator[bytes], table: bytes | None, clear: bytes) -> Iterator[list[bytes]]:
    """Yield each line as its red, green, blue and, if present, alpha channels."""
    if head.colour == _OF_PALETTE:
        table = (table or b"").ljust(768, b"\0")
        looks = [table[place::3][:256] for place in range(3)] + ([clear.ljust(256, b"\xff")[:256]] if clear else [])
        for line in lines:
            numbers = _unpacked(line, head)
            yield [numbers.translate(look) for look in looks]
        return
    count, step = _CHANNELS[head.colour], head.depth // 8 or 1
    largest = (1 << head.depth) - 1
    spread = bytes([min(255, value * 255 // largest) for value in range(256)])
    for line in lines:
        if head.depth < 8:
            line = _unpacked(line, head).translate(spread)
        found = [line[place * step :: count * step] for place in range(count)]
        yield [*found[:1] * 3, *found[1:]] if count < 3 else found


def _unpacked(line: bytes, head: _Head) -> bytes:
    """Return one byte per pixel if several pixels were packed into a byte."""
    if head.depth >= 8:
        return line
    mask, shifts = (1 << head.depth) - 1, range(8 - head.depth, -1, -head.depth)
    return bytes([(value >> shift) & mask for value in line for shift in shifts])[: head.width]


def _scaled(head: _Head, lines: Iterator[list[bytes]], box: tuple[int, int], ground: Colour) -> Pixels:
    """Scale the image to fit the box; each pixel is the average of those it replaces."""
    share = min(box[0] / head.width, box[1] / head.height)
    width, height = max(1, int(head.width * share)), max(1, int(head.height * share))
    left = [x * head.width // width for x in range(width)]
    right = [max(at + 1, (x + 1) * head.width // width) for x, at in enumerate(left)]
    wide = [end - start for start, end in zip(left, right, strict=True)]
    made: list[bytes] = []
    before = -1, -1
    source = enumerate(lines)
    number, line = next(source)
    for y in range(height):
        first = y * head.height // height
        last = max(first + 1, (y + 1) * head.height // height)
        if (first, last) == before:  # enlarged: one line of the image fills several
            made.append(made[-1])
            continue
        before = first, last
        while number < first:
            number, line = next(source)
        taken = [line]
        while number < last - 1:
            number, line = next(source)
            taken.append(line)
        made.append(_averaged(taken, left, right, wide, ground))
    return Pixels(width, height, made)


def _averaged(
    taken: Sequence[list[bytes]], left: list[int], right: list[int], wide: list[int], ground: Colour
) -> bytes:
    """Average several lines into one."""
    averages = []
    for channel in zip(*taken, strict=True):
        summed = channel[0] if len(channel) == 1 else [sum(values) for values in zip(*channel, strict=True)]
        until = [0, *accumulate(summed)]
        ends = map(sub, map(until.__getitem__, right), map(until.__getitem__, left))
        averages.append([value // (count * len(channel)) for value, count in zip(ends, wide, strict=True)])
    if len(averages) == 4:
        seen = averages.pop()
        averages = [
            [(value * part + under * (255 - part)) // 255 for value, part in zip(values, seen, strict=True)]
            for values, under in zip(averages, ground, strict=True)
        ]
    return bytes([value for pixel in zip(*averages, strict=True) for value in pixel])


def in_few_colours(pixels: Pixels) -> Paletted:
    """Reduce to at most :data:`MOST_COLOURS` colours by averaging similar ones; few colours stay unchanged.

    This is a median cut: the box of colours whose pixels differ the most is halved until there are enough boxes.
    """
    lines = [list(zip(*[iter(line)] * 3, strict=True)) for line in pixels.lines]
    found = Counter(colour for line in lines for colour in line)
    if len(found) > _MANY:  # merge colours that look the same
        lines = [[(red & 0xFC | 2, green & 0xFC | 2, blue & 0xFC | 2) for red, green, blue in line] for line in lines]
        found = Counter(colour for line in lines for colour in line)
    boxes = [_Box(found, list(found))]
    while len(boxes) < MOST_COLOURS and (widest := max(boxes, key=lambda one: one.spread)).spread > 0:
        boxes.remove(widest)
        boxes += widest.halves()
    places = {colour: place for place, box in enumerate(boxes) for colour in box.colours}
    drawn = tuple(bytes([places[colour] for colour in line]) for line in lines)
    return Paletted(pixels.width, pixels.height, tuple(box.average() for box in boxes), drawn)


class _Box:
    """Colours that may be averaged into one."""

    def __init__(self, counts: Mapping[Colour, int], colours: list[Colour]) -> None:
        self._counts, self.colours = counts, colours
        spans = [max(channel) - min(channel) for channel in zip(*colours, strict=True)]
        self._widest = spans.index(max(spans))
        self.spread = max(spans) * sum(counts[one] for one in colours) ** 0.5

    def halves(self) -> tuple[_Box, _Box]:
        """Cut along the channel in which the colours differ the most, with half of the pixels on each side."""
        colours = sorted(self.colours, key=lambda one: one[self._widest])
        until = list(accumulate(self._counts[one] for one in colours))
        at = max(1, min(len(colours) - 1, bisect_left(until, until[-1] / 2)))
        return _Box(self._counts, colours[:at]), _Box(self._counts, colours[at:])

    def average(self) -> Colour:
        weights = [self._counts[one] for one in self.colours]
        red, green, blue = (
            round(sum(map(mul, channel, weights)) / sum(weights)) for channel in zip(*self.colours, strict=True)
        )
        return red, green, blue
