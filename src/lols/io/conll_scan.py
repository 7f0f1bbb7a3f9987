"""Kernels that find tokens and columns in the bytes of token-per-line files.

They allocate nothing, create no Python objects and run without the interpreter's lock. A kernel cannot compose a
message: what is wrong with the input goes into `report` as a code, a line, a number of columns and a position.
"""

from __future__ import annotations

from lols.kernels.dual import dual
from lols.kernels.kernel import kernel
from lols.kernels.words import copy

CONLLU, CONLLX, COLUMNS, TSV = range(4)
FINE, WORD, OTHER, COUNT, EMPTY_SENTENCE, EMPTY_FORM, IDENTITY, RANGE = range(8)  # kinds of lines, then mistakes
CODE, LINE, FOUND, PLACE, TOKENS, SENTENCES, CURSOR, FILLED, SEEN, CELLS = range(10)  # the cells of a report
TAB, NEWLINE, RETURN, SPACE, HASH, HYPHEN, DOT, ZERO, NINE, EQUALS, BAR = 9, 10, 13, 32, 35, 45, 46, 48, 57, 61, 124
DOCUMENT = (45, 68, 79, 67, 83, 84, 65, 82, 84, 45)  # -DOCSTART-


# --- blank lines ------------------------------------------------------------------------------------------------------


@dual
def is_blank(byte):
    """Whether a line of such bytes counts as blank."""
    return byte == SPACE or byte == TAB or byte == RETURN  # (a tuple takes long to compile)


@dual
def is_blank_line(buffer, at, end):
    """Whether there is nothing but spaces and tabs in a line."""
    while at < end and is_blank(buffer[at]):
        at += 1
    return at == end


@kernel
def last_cut(buffer):
    """Where the last block begins, with a blank line and another block before it; 0 if there is no such place.

    Blank lines belong to the block before them, so that no piece of a file has blank lines only.
    """
    following = -1  # where the line after this one begins, if there is something in it
    cut = 0
    end = buffer.size
    while end >= 0:
        start = end
        text = False
        while start > 0 and buffer[start - 1] != NEWLINE:
            start -= 1
            text |= not is_blank(buffer[start])
        if text and cut > 0:
            return cut
        if not text and cut == 0 and following >= 0:
            cut = following
        following = start if text else -1
        end = start - 1
    return 0


# --- lines and columns ------------------------------------------------------------------------------------------------


@dual
def find_marks(buffer, runs, marks, state):
    """Note where the next separators and newlines are, the end of the buffer counting as one; return their number.

    They are sought for thousands of bytes at a time, without a branch that depends on a byte: processors guess such
    branches wrongly, which would cost more than everything else here.
    """
    filled = 0
    while filled == 0:
        begin = state[SEEN]
        if begin < 0:  # never, but the compiler must know it
            begin = 0
        end = begin + marks.size
        if end > buffer.size:
            end = buffer.size
        if runs:
            for k in range(begin, end):
                marks[filled] = k
                filled += (buffer[k] == TAB) | (buffer[k] == NEWLINE) | (buffer[k] == SPACE)
        else:
            for k in range(begin, end):
                marks[filled] = k
                filled += (buffer[k] == TAB) | (buffer[k] == NEWLINE)
        if begin == buffer.size:
            marks[0] = begin
            filled = 1
        state[SEEN] = end
    state[FILLED] = filled
    return filled


@dual
def split(buffer, at, runs, marks, state, starts, ends):
    """Note where the columns of a line begin and end; return their number and where the line ends.

    They are separated by tabs, or by any `runs` of spaces and tabs, which may be before and after them, too.
    """
    found = 0
    cursor, filled = state[CURSOR], state[FILLED]
    while True:
        if cursor == filled:
            filled = find_marks(buffer, runs, marks, state)
            cursor = 0
        mark = marks[cursor]
        cursor += 1
        end = mark
        over = mark == buffer.size or buffer[mark] == NEWLINE
        if over and mark > at and buffer[mark - 1] == RETURN:
            end -= 1
        if end > at or not runs:
            if found < starts.size:
                starts[found] = at
                ends[found] = end
            found += 1
        if over:
            break
        at = mark + 1
    state[CURSOR] = cursor
    return found, mark


@dual
def kind_of_id(buffer, at, end):
    """What the id of a CoNLL-U line says: 3 is a WORD, 3-4 spans words and 5.1 is an empty node: OTHER."""
    start = at
    while at < end and ZERO <= buffer[at] <= NINE:
        at += 1
    if at == end and at > start:
        return WORD
    if at == start or at == end or (buffer[at] != HYPHEN and buffer[at] != DOT):  # noqa: SIM109  (a tuple takes long to compile)
        return IDENTITY
    start = at + 1
    at = start
    while at < end and ZERO <= buffer[at] <= NINE:
        at += 1
    return OTHER if at == end and at > start else IDENTITY


@dual
def opens_document(buffer, start, end):
    """Whether a column begins with -DOCSTART-."""
    if end - start < len(DOCUMENT):
        return False
    for k in range(len(DOCUMENT)):
        if buffer[start + k] != DOCUMENT[k]:
            return False
    return True


@dual
def kind_of_line(buffer, start, mode, found, count, starts, ends):
    """WORD, OTHER for a line that is none, or the code of a mistake."""
    if mode == CONLLU and buffer[start] == HASH:
        return OTHER
    if mode == COLUMNS and opens_document(buffer, starts[0], ends[0]):
        return OTHER
    if found != count:
        # In CoNLL-X, a line that begins with # may be a word.
        return OTHER if mode == CONLLX and buffer[start] == HASH else COUNT
    if mode == COLUMNS or mode == TSV:  # noqa: SIM109  (a tuple takes long to compile)
        return WORD
    kind = kind_of_id(buffer, starts[0], ends[0])
    if mode == CONLLX:
        return RANGE if kind == OTHER else WORD
    return kind


@dual
def complain(report, code, line, found, place):
    """Note what is wrong and where."""
    report[CODE] = code
    report[LINE] = line
    report[FOUND] = found
    report[PLACE] = place


@kernel
def scan(buffer, at, line, mode, count, form, picks, marks, starts, ends, offsets, lines, begin, end, report):
    """Find tokens, sentences and the columns picked, up to the end of the buffer or the first mistake.

    Parameters
    ----------
    at, line
        where the first line begins, and its number
    mode
        the format: CONLLU, CONLLX, COLUMNS or TSV
    count, form
        how many columns a line must have, and which of them must not be empty (-1 if none)
    picks
        the columns wanted, 0-based, or -1 for one that the file does not have
    marks, starts, ends
        room to work in: for some thousand places, and for the places of `count` columns
    offsets, lines, begin, end
        the result: room for as many tokens as there are lines
    report
        gets a code, and the numbers of tokens and sentences
    """
    token, first, sentence = 0, 0, 0
    opened = 0  # the line at which the block begins that we are in
    offsets[0] = 0
    report[CODE] = FINE
    report[CURSOR] = report[FILLED] = 0
    report[SEEN] = at
    while True:
        start = at
        found = 0
        if at < buffer.size:
            found, at = split(buffer, at, mode == COLUMNS, marks, report, starts, ends)
        if is_blank_line(buffer, start, at):
            if token > first:
                sentence += 1
                offsets[sentence] = token
                first = token
            elif mode == CONLLU and opened > 0:
                complain(report, EMPTY_SENTENCE, opened, 0, start)
                break
            opened = 0
            if at >= buffer.size:
                break
        else:
            if opened == 0:
                opened = line
            kind = kind_of_line(buffer, start, mode, found, count, starts, ends)
            if kind == WORD and form >= 0 and starts[form] == ends[form]:
                kind = EMPTY_FORM
            if kind >= COUNT:
                complain(report, kind, line, found, start)
                break
            if kind == WORD:
                lines[token] = line
                for j in range(picks.size):
                    k = picks[j]
                    begin[j, token] = starts[k] if k >= 0 else 0
                    end[j, token] = ends[k] if k >= 0 else 0
                token += 1
        at += 1
        line += 1
    report[TOKENS] = token
    report[SENTENCES] = sentence


@kernel
def narrow(buffer, begin, end, key):
    """Narrow cells such as Case=Nom|Number=Sing to the value of one key, or to nothing where it is absent."""
    for t in range(begin.size):
        at = begin[t]
        stop = end[t]
        begin[t] = stop
        while at < stop:
            k = 0
            while k < key.size and at + k < stop and buffer[at + k] == key[k]:
                k += 1
            here = k == key.size and at + k < stop and buffer[at + k] == EQUALS
            value = at + k + 1
            while at < stop and buffer[at] != BAR:
                at += 1
            if here:
                begin[t] = value
                end[t] = at
                break
            at += 1


# --- writing ----------------------------------------------------------------------------------------------------------


@kernel
def fill(buffer, begin, end, numbers, labels, places, out):
    """Copy the buffer, with the label `labels[places[n]:places[n + 1]]` for the text of a token with number n."""
    source, target = 0, 0
    for t in range(numbers.size):
        copy(out, target, buffer, source, begin[t])
        target += begin[t] - source
        start = places[numbers[t]]
        length = places[numbers[t] + 1] - start
        for k in range(length):  # labels are short: a call would take longer
            out[target + k] = labels[start + k]
        target += length
        source = end[t]
    copy(out, target, buffer, source, buffer.size)
