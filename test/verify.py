#!/usr/bin/env python3
"""Verifies a journal without its key: the form of each line, their numbers, their chain, and what a crash left.

    python3 test/verify.py journal.jsonl [HEAD] [--key journal.key] [--archive FILE]...

Written from the README's section "The journal" alone, in another language than the program, so that neither can hide
a mistake of the other. HEAD is a chain's head that was noted earlier: the journal must still hold it. Prints the
number of records and the head. Exit codes: 0 verified; 1 a file that cannot be read; 3 damaged, naming line and byte.
Seals are not opened, but with the key those of the first lines of a journal that came from another one, which name the
ends of those before it: HEAD may be one of these, and each FILE must end at one. Python's own library has no AES, so a
slow one is below.
"""
import base64
import hashlib
import json
import re
import sys

FORM = re.compile(
    rb'((?P<sealed_head>\{"seq":(?P<seq>[1-9][0-9]{0,15}),"time":"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"'
    rb',"type":"(?P<type>[a-z]+\.[a-z]+)","by":(null|[1-9][0-9]{0,15}),"key":"(?P<key>[0-9a-f]{8})")'
    rb',"sealed":"(?P<sealed>[A-Za-z0-9+/]+={0,2})"),"hash":"(?P<hash>[0-9a-f]{64})"\}')
SEAL_LEAST = 12 + 16  # nonce and tag
LINE_MOST = 32 * 1024 * 1024
WRITE_MOST = LINE_MOST + 2 * 1024 * 1024
SHORT_WRITE_MOST = 1_922_392
FOREIGN = re.compile(rb'[^\0\n"+,\-./0-9:=A-Za-z{}]|\}[^\0\n]')
SECTOR = 512
BLOCK = 4096
CUT = 'it was written again, and ends before its record journal.whole'


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
    return {'seq': int(found['seq']), 'hash': found['hash'], 'hashed': found[1], 'starts_write': sealed[0] >= 128,
            'time': found['time'].decode(), 'type': found['type'].decode(), 'key': found['key'].decode(),
            'sealed': sealed, 'sealed_head': found['sealed_head']}


def times(a, b):
    """The product of two elements of GF(2^8), as AES has it."""
    product = 0
    for bit in range(8):
        product ^= (a << bit) * (b >> bit & 1)
    for bit in range(14, 7, -1):
        product ^= (0x11b << bit - 8) * (product >> bit & 1)
    return product


def substitute(byte):
    """The S-box: the inverse, and an affine map of it."""
    inverse = next((one for one in range(256) if times(byte, one) == 1), 0)
    bits = inverse * 0x101
    return (inverse ^ bits >> 7 ^ bits >> 6 ^ bits >> 5 ^ bits >> 4) & 255 ^ 0x63


def round_keys(key):
    """The 15 round keys of AES-256 (FIPS 197)."""
    words = [key[at:at + 4] for at in range(0, 32, 4)]
    constant = 1
    for n in range(8, 60):
        word = words[-1]
        if n % 8 == 0:
            word = bytes(BOX[byte] for byte in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = times(constant, 2)
        elif n % 8 == 4:
            word = bytes(BOX[byte] for byte in word)
        words.append(bytes(a ^ b for a, b in zip(words[-8], word)))
    return [b''.join(words[n:n + 4]) for n in range(0, 60, 4)]


def encrypt(keys, block):
    """One block of AES-256."""
    state = [a ^ b for a, b in zip(block, keys[0])]
    for n, key in enumerate(keys[1:], 1):
        state = [BOX[state[(at + 4 * (at % 4)) % 16]] for at in range(16)]
        if n < 14:
            state = [DOUBLE[state[at]] ^ DOUBLE[next_one] ^ next_one ^ third ^ fourth for at in range(16)
                     for next_one, third, fourth in [[state[at // 4 * 4 + (at + more) % 4] for more in (1, 2, 3)]]]
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


def open_seal(key, sealed, additional):
    """What was sealed with AES-256-GCM (NIST SP 800-38D); None if the tag is another."""
    nonce, text, tag = sealed[:12], sealed[12:-16], sealed[-16:]
    keys = round_keys(key)
    masks = [encrypt(keys, nonce + n.to_bytes(4, 'big')) for n in range(1, 2 + -(-len(text) // 16))]
    factor, total = int.from_bytes(encrypt(keys, bytes(16)), 'big'), 0
    padded = [part + bytes(-len(part) % 16) for part in (additional, text)]
    lengths = (8 * len(additional)).to_bytes(8, 'big') + (8 * len(text)).to_bytes(8, 'big')
    hashed = b''.join(padded) + lengths
    for at in range(0, len(hashed), 16):
        left, total, right = total ^ int.from_bytes(hashed[at:at + 16], 'big'), 0, factor
        for bit in range(127, -1, -1):
            total ^= right * (left >> bit & 1)
            right = right >> 1 ^ (0xe1 << 120) * (right & 1)
    if (total ^ int.from_bytes(masks[0], 'big')).to_bytes(16, 'big') != tag:
        return None
    return bytes(a ^ b for a, b in zip(text, b''.join(masks[1:])))


BOX, DOUBLE = [], []  # filled where there are keys: it takes longer than a short journal


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


def shown(tail):
    """What the beginning of a tail shows: the type, and the first character of the seal; None where it does not."""
    found = re.match(rb'\{"seq":\d+,"time":"[^"\0]*","type":"([a-z]+\.[a-z]+)"'
                     rb'(?:,"by":\w+,"key":"\w+","sealed":"([A-Za-z0-9+/]))?', tail)
    return (found[1], found[2]) if found else (None, None)


def is_torn(tail, offset, seq):
    """Whether all from the first malformed line on, which would be number `seq`, is a write that a crash cut."""
    whole = b'{"seq":%d,"time":"' % seq
    if not whole.startswith(tail[:len(whole)].split(b'\0')[0]):
        return False
    kind, first = shown(tail)
    is_long = kind is None or re.match(rb'(entry|entries|fields)\.', kind) and (
        first is None or base64.b64decode(first + b'A==')[0] & 0x40)
    if len(tail) > (WRITE_MOST if is_long else SHORT_WRITE_MOST):
        return False
    # A line of a file that was renamed when it was whole, or too little to tell.
    if seq == 1 if kind is None else kind.startswith(b'journal.') or kind.endswith(b'.kept'):
        return False
    runs = [(zeros.start(), zeros.end(), len(tail), offset) for zeros in re.finditer(rb'\0+', tail)]
    unwritten = tail[:1] == b'\0' and offset % BLOCK
    if not unwritten and any(lost_block(*run) for run in runs):
        return False
    if FOREIGN.search(tail) or not all(lost_sectors(*run) for run in runs):
        return False
    for start, raw, ended in pieces(tail, 0):
        if not ended:
            continue
        at = max(0, raw.rfind(b'{"seq":'))
        line = parse(raw[at:])
        if line and line['starts_write']:
            return False
        if not (line and at == 0) and not any(start <= run[0] and run[1] <= start + len(raw) for run in runs):
            return False
    return True


def verify(data, keys=None):
    """The hashes of a journal, the ends of those before it that it names, where keys are given, and whether it has a torn
    tail; raises ValueError, saying what is wrong, where it is damaged."""
    hashes, ends, is_first, is_open = ['0' * 64], [], True, False
    for offset, raw, ended in pieces(data, 0):
        line = parse(raw) if ended else None
        where = f'line {len(hashes)} at byte {offset}'
        if line is None:
            if is_open:
                raise ValueError(f'{where}: {CUT}')
            if not is_torn(data[offset:offset + WRITE_MOST + 1], offset, len(hashes)):
                raise ValueError(f'{where}: it is not a line of a journal')
            print(f'torn tail of {len(data) - offset} bytes', file=sys.stderr)
            return hashes, ends, True
        if line['seq'] != len(hashes):
            raise ValueError(f'{where}: its seq is {line["seq"]}')
        head = hashes[-1].encode()
        if hashlib.sha256(head + line['hashed']).hexdigest().encode() != line['hash']:
            raise ValueError(f'{where}: its hash does not follow')
        if line['type'] == 'journal.rewritten' and line['seq'] > 1 or line['type'] == 'journal.whole' and not is_open:
            raise ValueError(f'{where}: its type does not belong there')
        is_open = line['type'] == 'journal.rewritten' or is_open and line['type'] != 'journal.whole'
        is_first = is_first and line['type'] in ('journal.rewritten', 'journal.continued')
        if is_first and keys is not None:
            if line['key'] not in keys:
                raise ValueError(f'{where}: it needs key {line["key"]}')
            opened = open_seal(keys[line['key']], line['sealed'], head + line['sealed_head'])
            if opened is None:
                raise ValueError(f'{where}: its seal does not open')
            ends.append({**json.loads(opened), 'ended': line['time']})
        hashes.append(line['hash'].decode())
    if is_open:
        raise ValueError(f'line {len(hashes)} at byte {len(data)}: {CUT}')
    return hashes, ends, False


def main(path, *words):
    """Prints what is to be said of a journal and its archives."""
    wanted, keys, archives = None, None, []
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ('--key', '--archive') and words:
            file = words.pop(0)
            if word == '--archive':
                archives.append(file)
                continue
            with open(file, encoding='ascii') as lines:
                secrets = [bytes.fromhex(line) for line in lines]
            BOX[:] = [substitute(byte) for byte in range(256)]
            DOUBLE[:] = [times(byte, 2) for byte in range(256)]
            keys = {hashlib.sha256(secret).hexdigest()[:8]: secret for secret in secrets}
        elif wanted is None and not word.startswith('-'):
            wanted = word
        else:
            usage()
    if archives and keys is None:
        usage()
    hashes, ends, _ = verify(read(path), keys)
    said = [f'{len(hashes) - 1} records, head {hashes[-1]}']
    known = {*hashes[1:], *(end['head'] for end in ends)}  # of no record: every journal has it
    joined = []
    for archive in archives:
        older, _, is_torn_off = verify(read(archive))
        at = next((n for n, end in enumerate(ends) if end['head'] == older[-1] and end['records'] == len(older) - 1), None)
        if at is None or is_torn_off:
            raise ValueError(f'{archive} does not join')
        joined.append((-at, f'{archive} joins: {len(older) - 1} records, {ends[at]["why"]} {ends[at]["ended"]}'))
        known.update(older[1:])
    if wanted is not None and wanted not in known:
        raise ValueError(f'no line has the hash {wanted}')
    print('\n'.join(said + [text for _, text in sorted(joined)]))


def read(path):
    with open(path, 'rb') as journal:
        return journal.read()


def usage():
    sys.exit('usage: python3 verify.py journal.jsonl [HEAD] [--key journal.key] [--archive FILE]...')


if len(sys.argv) < 2:
    usage()
try:
    main(*sys.argv[1:])
except OSError as error:
    sys.exit(f'{error.filename}: {error.strerror}')
except ValueError as damage:
    print(damage)
    sys.exit(3)
