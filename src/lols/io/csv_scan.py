"""Kernels that find the cells of comma-separated files and number the distinct texts of each column.

Separators are found 64 bytes at a time: a comparison of 64 bytes is one instruction or two, and its result is a word
with a bit for each byte. A cell of up to 8 bytes is a word, too, and that word is what the column's table knows it by.
No Python object is made for a cell, and nothing is allocated: where room is short, `scan` returns and is called again.
"""

from __future__ import annotations

import numpy as np

from lols.kernels.dual import dual, not_inlined
from lols.kernels.kernel import kernel
from lols.kernels.words import BLOCK, WORD, equal_bits, lowest_bit, rare_bits, word_at

FINE, ROOM, COLUMNS, ODD, OPEN = range(5)  # what a scan ends with, see `scan`
CODE, AT, ROW, USED, RARE, CELLS = range(6)  # the cells of a report
BASE, SHIFT, SLOTS, COUNT, BYTES, ESCAPED = range(6)  # the cells of a column's row in `tables`
AT_START, IN_CELL, IN_QUOTES, AFTER_QUOTE = range(4)  # where in a cell a byte is
WIDTH = 8  # of what is known: a cache line
NEWLINE, RETURN, QUOTE = 10, 13, 34
PADDING = BLOCK + WORD  # how many bytes there must be behind the last one
FIRST = 64 - 6  # the shift of a table at first, when it has 64 slots
ONE, FULL = np.uint64(1), np.uint64(BLOCK - 1)
NONE, HALF, BYTE, LENGTH = np.uint64(0), np.uint64(32), np.uint64(8), np.uint64(0xFFFFFFFF)
MULTIPLY, TOP = np.uint64(0x9E3779B97F4A7C15), np.uint64(1 << 63)
MASKS = np.array([(1 << 8 * k) - 1 for k in range(WORD + 1)], np.uint64)


# --- tables of distinct texts -----------------------------------------------------------------------------------------
#
# A table of S slots is S / 2 places (start and length of a text) and then S pairs of a key and the text's number plus
# one. The keys of longer texts are hashes, and end in a zero byte: those of short ones do not, but for the empty text.


@dual
def need(slots):
    """How many words a table takes."""
    return 2 * slots + slots // 2


@kernel
def prepare(shifts, tables, arena, report):
    """Give each column an empty table of 2 ** (64 - shift) slots, one behind the other; the arena must have room."""
    used = 0
    for c in range(tables.shape[0]):
        slots = 1 << (64 - shifts[c])
        base = used + slots // 2
        used += need(slots)
        for k in range(base, used):
            arena[k] = NONE
        tables[c, BASE], tables[c, SHIFT], tables[c, SLOTS] = base, shifts[c], slots
        tables[c, COUNT] = tables[c, BYTES] = tables[c, ESCAPED] = 0
    for k in range(report.size):
        report[k] = 0
    report[USED] = used


@dual
def long_key(buffer, start, length):
    """A hash of a text of more than 8 bytes."""
    code = np.uint64(length)
    for k in range(start, start + length - WORD, WORD):
        code = (code ^ word_at(buffer, k)) * MULTIPLY
        code ^= code >> HALF
    code = (code ^ word_at(buffer, start + length - WORD)) * MULTIPLY
    code ^= code >> HALF
    return (code << BYTE) | TOP


@dual
def same_text(buffer, place, start, length):
    """Whether a text that was seen before is the one at a place."""
    if np.int64(place & LENGTH) != length:
        return False
    before = np.int64(place >> HALF)
    for k in range(0, length - WORD, WORD):
        if word_at(buffer, before + k) != word_at(buffer, start + k):
            return False
    return length < WORD or word_at(buffer, before + length - WORD) == word_at(buffer, start + length - WORD)


@dual
def grow(tables, c, arena, report):
    """Move a table to where there is room for twice as many slots; False if there is none."""
    old, slots = tables[c, BASE], tables[c, SLOTS]
    wider = 2 * slots
    if report[USED] + need(wider) > arena.size:
        return False
    first = report[USED]
    base = first + wider // 2
    shift = tables[c, SHIFT] - 1
    report[USED] += need(wider)
    for k in range(tables[c, COUNT]):
        arena[first + k] = arena[old - slots // 2 + k]
    for k in range(base, base + 2 * wider):
        arena[k] = NONE
    for k in range(old, old + 2 * slots, 2):
        if arena[k + 1] != NONE:
            h = np.int64((arena[k] * MULTIPLY) >> np.uint64(shift))
            while arena[base + 2 * h + 1] != NONE:
                h = (h + 1) & (wider - 1)
            arena[base + 2 * h] = arena[k]
            arena[base + 2 * h + 1] = arena[k + 1]
    tables[c, BASE], tables[c, SHIFT], tables[c, SLOTS] = base, shift, wider
    return True


@dual
def number_of(buffer, start, length, tables, c, arena, report):
    """The number of a text in its column, a new one if need be; -1 if there is no room for it."""
    key = word_at(buffer, start) & MASKS[length] if length <= WORD else long_key(buffer, start, length)
    while True:
        base, slots = tables[c, BASE], tables[c, SLOTS]
        h = np.int64((key * MULTIPLY) >> np.uint64(tables[c, SHIFT]))
        slot = base + 2 * h
        number = np.int64(arena[slot + 1])
        while number > 0:
            if arena[slot] == key and (
                length <= WORD or same_text(buffer, arena[base - slots // 2 + number - 1], start, length)
            ):
                return number
            h = (h + 1) & (slots - 1)
            slot = base + 2 * h
            number = np.int64(arena[slot + 1])
        count = tables[c, COUNT]
        if 2 * count < slots:
            arena[base - slots // 2 + count] = (np.uint64(start) << HALF) | np.uint64(length)
            arena[slot] = key
            arena[slot + 1] = np.uint64(count + 1)
            tables[c, COUNT] = count + 1
            tables[c, BYTES] += length
            return count + 1
        if not grow(tables, c, arena, report):
            return 0


# --- cells ------------------------------------------------------------------------------------------------------------


@kernel
def line_ends(buffer, size):
    """The number of lines that end in the first bytes: with a newline, a carriage return, or one after the other."""
    count = 0
    for k in range(size):
        count += (buffer[k] == NEWLINE) | ((buffer[k] == RETURN) & (buffer[k + 1] != NEWLINE))
    return count


@dual
def within(quotes, open):
    """The bytes inside quotes, the opening ones with them; `open` is all ones if the block begins inside."""
    for k in range(6):
        quotes ^= quotes << np.uint64(1 << k)
    return quotes ^ open


@dual
def state_of(open, first, closed):
    """Where in a cell a block begins: inside quotes, at its start, after a quote, or none of these."""
    if open != NONE:
        return IN_QUOTES
    if first != NONE:
        return AT_START
    return AFTER_QUOTE if closed != NONE else IN_CELL


@not_inlined
@dual
def step_by_step(buffer, begin, count, separator, state):
    """The same for quotes of all kinds, by one byte after the other; and the state after the last one.

    As in Python's csv module, a quote at the beginning of a cell opens it, two inside stand for one, and what follows
    the closing one belongs to the cell as it is.
    """
    inside = NONE
    for k in range(count):
        byte = buffer[begin + k]
        if state == IN_QUOTES:
            inside |= ONE << np.uint64(k)
            if byte == QUOTE:
                state = AFTER_QUOTE
        elif byte == QUOTE and state != IN_CELL:
            state = IN_QUOTES
        elif byte == separator or byte == NEWLINE or byte == RETURN:  # noqa: SIM109  (a tuple takes long to compile)
            state = AT_START
        else:
            state = IN_CELL
    return inside, state


@not_inlined
@dual
def is_enclosed(buffer, start, length):
    """Whether the quotes of a cell that begins with one are this one and its last byte."""
    for k in range(start + 1, start + length - 1):
        if buffer[k] == QUOTE:
            return False
    return buffer[start + length - 1] == QUOTE


@kernel
def scan(buffer, size, separator, careful, codes, tables, arena, report):
    """Number the cells, from the row in the report to the end or to the first trouble.

    Parameters
    ----------
    buffer, size
        bytes, and how many of them count: the last of these is a newline, and `PADDING` more follow them
    separator
        the byte between two cells
    careful
        whether to go on where quotes do more than enclose a whole cell, or a carriage return ends a line
    codes
        the result, int32 [columns, rows]: room for as many rows as there are lines
    tables, arena
        the distinct texts of each column, as `prepare` makes them; those of cells with quotes inside quotes or text
        after them are kept with their quotes (no other text begins with one), and their columns are ESCAPED
    report
        where to begin, and the result: a code, the place up to which rows are complete, the number of rows, and whether
        there are bytes that are zero or not ASCII.
        The code is FINE; ROOM if the arena is too small; COLUMNS if the row at the place has the wrong number of them;
        ODD where only a careful scan goes on; OPEN if a careful one ends inside quotes
    """
    last = codes.shape[0] - 1
    row, opened = report[ROW], report[AT]
    column, start = 0, opened
    first, returned, closed = ONE, NONE, NONE  # whether a cell begins with the block, or comes after a \r or a quote
    open = NONE  # all ones if the block begins inside quotes
    quoted = False  # whether there are quoted cells
    odd_end = 0  # the end of the last block that had to be scanned step by step
    rare = NONE
    code = FINE
    begin = opened
    while begin < size and code == FINE:
        lines = equal_bits(buffer, begin, NEWLINE)
        returns = equal_bits(buffer, begin, RETURN)
        ends = lines | returns | equal_bits(buffer, begin, separator)
        quotes = equal_bits(buffer, begin, QUOTE)
        strange = rare_bits(buffer, begin)
        if size - begin < BLOCK:
            valid = (ONE << np.uint64(size - begin)) - ONE
            ends &= valid
            strange &= valid
            quotes &= valid
            returns &= valid
        rare |= strange
        # A quote inside a cell is a character like any other. Where cells are in quotes, there must be no other quotes.
        marks, odd = ends, NONE
        open_before, first_before, closed_before = open, first, closed
        if (open | (quotes & ((marks << ONE) | first))) != NONE:
            quoted = True
            inside = within(quotes, open)
            marks &= ~inside
            returns &= ~inside
            odd = quotes & inside & ~((marks << ONE) | first)
            open = NONE - (inside >> FULL)
            quotes &= ~inside
        else:
            quotes = NONE
        odd |= ((quotes << ONE) | closed) & ~marks
        odd |= ((returns << ONE) | returned) & ~lines
        closed = quotes >> FULL
        first, returned = marks >> FULL, returns >> FULL
        if odd != NONE:
            if not careful:
                code = ODD
                break
            before = state_of(open_before, first_before, closed_before)
            inside, state = step_by_step(buffer, begin, min(size - begin, BLOCK), separator, before)
            marks = ends & ~inside
            open = NONE - np.uint64(state == IN_QUOTES)
            first, returned, closed = np.uint64(state == AT_START), NONE, np.uint64(state == AFTER_QUOTE)
            quoted = True
            odd_end = begin + BLOCK
        while marks != NONE:
            end = begin + lowest_bit(marks)
            marks &= marks - ONE
            over = buffer[end] != separator
            length = end - start
            if over and length == 0 and column == 0:  # a blank line, or a newline after a carriage return
                start = opened = end + 1
                continue
            if over != (column == last):
                code = COLUMNS
                break
            if quoted and length > 1 and buffer[start] == QUOTE:
                if start < odd_end and not is_enclosed(buffer, start, length):
                    tables[column, ESCAPED] = 1
                else:
                    start += 1
                    length -= 2
            # What nearly always happens is here: a short text, found in the first slot of its table.
            key = word_at(buffer, start) & MASKS[min(length, WORD)]
            c = np.uint64(column)
            slot = np.uint64(tables[c, BASE]) + (((key * MULTIPLY) >> np.uint64(tables[c, SHIFT])) << ONE)
            number = np.int64(arena[slot + ONE])
            if (arena[slot] != key) | (length > WORD) | (number == 0):
                number = number_of(buffer, start, length, tables, column, arena, report)
                if number == 0:
                    code = ROOM
                    break
            codes[c, np.uint64(row)] = number - 1
            column += 1
            start = end + 1
            if over:
                row += 1
                column = 0
                opened = start
        begin += BLOCK
    if code == FINE and open != NONE:
        code = OPEN if careful else ODD
    report[CODE], report[AT], report[ROW] = code, opened, row
    report[RARE] |= np.int64(rare != NONE)


@kernel
def fill(buffer, tables, arena, offsets, texts):
    """Put the distinct texts of the columns one behind the other, and where each begins within its column."""
    at, written = 0, 0
    for c in range(tables.shape[0]):
        place = tables[c, BASE] - tables[c, SLOTS] // 2
        begin = written
        for k in range(tables[c, COUNT]):
            offsets[at + k] = written - begin
            start = np.int64(arena[place + k] >> HALF)
            for j in range(np.int64(arena[place + k] & LENGTH)):
                texts[written] = buffer[start + j]
                written += 1
        offsets[at + tables[c, COUNT]] = written - begin
        at += tables[c, COUNT] + 1
