#!/usr/bin/env python3
"""Verifies a journal without its key: the form of each line, their numbers, their chain, and what a crash left.

    python3 test/verify.py journal.jsonl [HEAD]

Written from the README's section "The journal" alone, in another language than the program, so that neither can hide
a mistake of the other. HEAD is a chain's head that was noted earlier: the journal must still hold it. Prints the
number of records and the head. Exit codes: 0 verified; 3 damaged, naming line and byte. Seals are not opened: that
takes the key and AES-256-GCM, which Python's own library does not have.
"""
import base64
import hashlib
import re
import sys

FORM = re.compile(
    rb'((?P<sealed_head>\{"seq":(?P<seq>[1-9][0-9]{0,15}),"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"'
    rb',"type":"[a-z]+\.[a-z]+","by":(null|[1-9][0-9]{0,15}),"key":"[0-9a-f]{8}")'
    rb',"sealed":"(?P<sealed>[A-Za-z0-9+/]+={0,2})"),"hash":"(?P<hash>[0-9a-f]{64})"\}')
SEAL_LEAST = 12 + 16  # nonce and tag
LINE_MOST = 32 * 1024 * 1024
WRITE_MOST = LINE_MOST + 2 * 1024 * 1024
SECTOR = 512
BLOCK = 4096


def parse(raw):
    """The parts of a line without its end; None if it has not the form."""
    found = FORM.fullmatch(raw)
    if found is None or len(raw) > LINE_MOST:
        return None
    try:
        sealed = base64.b64decode(found['sealed'], validate=True)
    except ValueError:
        return None
    if len(sealed) < SEAL_LEAST or base64.b64encode(sealed) != found['sealed']:
        return None
    return {'seq': int(found['seq']), 'hash': found['hash'], 'hashed': found[1], 'starts_write': sealed[0] >= 128}


def pieces(data, offset):
    """What stands from an offset on: the offset of each line, its bytes, and whether it is ended."""
    while offset < len(data):
        end = data.find(b'\n', offset)
        if end < 0:
            yield offset, data[offset:], False
            return
        yield offset, data[offset:end], True
        offset = end + 1


def lost_block(start, end, size, offset):
    """Whether the zeros of a tail fill a block of the file, and are not more than that at its end."""
    block = -(-(offset + start) // BLOCK) * BLOCK - offset
    if start > 0 and end == size and end - block > BLOCK:
        return False
    return block < end and min(block + BLOCK, size) <= end


def lost_sectors(start, end, size, offset):
    """Whether the zeros of a tail are sectors that were not written."""
    return (start == 0 or (offset + start) % SECTOR == 0) and (end == size or (offset + end) % SECTOR == 0)


def is_torn(tail, offset, seq):
    """Whether all from the first malformed line on, which would be number `seq`, is a write that a crash cut."""
    whole = b'{"seq":%d,"time":"' % seq
    if len(tail) > WRITE_MOST or not whole.startswith(tail[:len(whole)].split(b'\0')[0]):
        return False
    runs = [(zeros.start(), zeros.end(), len(tail), offset) for zeros in re.finditer(rb'\0+', tail)]
    unwritten = tail[:1] == b'\0' and offset % BLOCK
    if not unwritten and any(lost_block(*run) for run in runs):
        return False
    lost = [run for run in runs if lost_sectors(*run)]
    for start, raw, ended in pieces(tail, 0):
        if not ended:
            continue
        at = max(0, raw.rfind(b'{"seq":'))
        line = parse(raw[at:])
        if line and line['starts_write']:
            return False
        if not (line and at == 0) and not any(start <= run[0] and run[1] <= start + len(raw) for run in lost):
            return False
    return True


def verify(data, wanted):
    """What is to be said of a journal; raises ValueError, saying what is wrong, where it is damaged."""
    head, records, seen = b'0' * 64, 0, wanted in (None, '0' * 64)
    for offset, raw, ended in pieces(data, 0):
        line = parse(raw) if ended else None
        where = f'line {records + 1} at byte {offset}'
        if line is None:
            if not is_torn(data[offset:offset + WRITE_MOST + 1], offset, records + 1):
                raise ValueError(f'{where}: it is not a line of a journal')
            print(f'torn tail of {len(data) - offset} bytes', file=sys.stderr)
            break
        if line['seq'] != records + 1:
            raise ValueError(f'{where}: its seq is {line["seq"]}')
        if hashlib.sha256(head + line['hashed']).hexdigest().encode() != line['hash']:
            raise ValueError(f'{where}: its hash does not follow')
        head, records = line['hash'], records + 1
        seen = seen or head.decode() == wanted
    if not seen:
        raise ValueError(f'no line has the hash {wanted}')
    return f'{records} records, head {head.decode()}'


if len(sys.argv) not in (2, 3):
    sys.exit('usage: python3 verify.py journal.jsonl [HEAD]')
try:
    with open(sys.argv[1], 'rb') as journal:
        print(verify(journal.read(), sys.argv[2] if len(sys.argv) > 2 else None))
except ValueError as damage:
    print(damage)
    sys.exit(3)
