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
SECTOR = 512


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


def holds_lost_sector(raw, offset, tail):
    """Whether zeros reach from a sector's beginning, or the tail's, to a sector's end or that of the bytes."""
    return any(
        ((offset + zeros.start()) % SECTOR == 0 or offset + zeros.start() == tail)
        and (zeros.end() == len(raw) or (offset + zeros.end()) % SECTOR == 0)
        for zeros in re.finditer(rb'\0+', raw))


def is_torn(data, tail):
    """Whether all from the first malformed line on is a write that a crash cut."""
    lost = follow = False
    for offset, raw, ended in pieces(data, tail):
        at = max(0, raw.rfind(b'{"seq":'))
        line = parse(raw[at:]) if ended else None
        if line and line['starts_write']:
            return False
        if tail == 0 and offset == 0 and ended and raw.startswith(b'{"seq":') and b'\0' not in raw:
            return False
        lost = lost or holds_lost_sector(raw[:at] if line else raw, offset, tail)
        follow = follow or line is not None
    return lost or not follow


def verify(data, wanted):
    """What is to be said of a journal; raises ValueError, saying what is wrong, where it is damaged."""
    head, records, seen = b'0' * 64, 0, wanted in (None, '0' * 64)
    for offset, raw, ended in pieces(data, 0):
        line = parse(raw) if ended else None
        where = f'line {records + 1} at byte {offset}'
        if line is None:
            if not is_torn(data, offset):
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


try:
    with open(sys.argv[1], 'rb') as journal:
        print(verify(journal.read(), sys.argv[2] if len(sys.argv) > 2 else None))
except ValueError as damage:
    print(damage)
    sys.exit(3)
