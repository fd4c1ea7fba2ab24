# SPDX-License-Identifier: Apache-2.0
"""Inputs for packaged programs, made by arithmetic, so that each run gets the same bytes."""

import math
import random
import struct


def picture(width, height, seed=1):
    """A PPM picture with waves, edges and a little noise."""
    chance = random.Random(int(seed))
    width, height = int(width), int(height)
    rows = bytearray()
    for y in range(height):
        for x in range(width):
            wave = math.sin(x / 23.0) * math.cos(y / 17.0)
            edge = 60 if (x // 40 + y // 30) % 2 else 0
            noise = chance.getrandbits(4)
            rows += bytes((int(110 + 80 * wave) + noise, edge + 100 * x // width + noise,
                           160 * y // height + edge // 2))
    return b"P6\n%d %d\n255\n" % (width, height) + bytes(rows)


def sequences(letters, count, length, seed=1):
    """FASTA of sequences that descend from one another by substitutions and short gaps."""
    chance = random.Random(int(seed))
    alphabet = {"dna": "ACGT", "protein": "ACDEFGHIKLMNPQRSTVWY"}[letters]
    family = ["".join(chance.choice(alphabet) for _ in range(int(length)))]
    for _ in range(int(count) - 1):
        parent = chance.choice(family)
        child = [chance.choice(alphabet) if chance.random() < 0.08 else letter
                 for letter in parent if chance.random() > 0.01]
        family.append("".join(child))
    return "".join(f">s{number:03d}\n{text}\n" for number, text in enumerate(family)).encode()


def alignment(count, length, seed=1):
    """FASTA of DNA sequences of one length, as an aligner would leave them."""
    chance = random.Random(int(seed))
    family = ["".join(chance.choice("ACGT") for _ in range(int(length)))]
    for _ in range(int(count) - 1):
        parent = chance.choice(family)
        family.append("".join(chance.choice("ACGT") if chance.random() < 0.1 else letter
                              for letter in parent))
    return "".join(f">s{number:03d}\n{text}\n" for number, text in enumerate(family)).encode()


def tone(seconds, channels=2):
    """A WAV file of 44.1 kHz, 16 bit: one chord for each channel."""
    rate, channels = 44100, int(channels)
    frames = bytearray()
    for index in range(int(float(seconds) * rate)):
        for channel in range(channels):
            phase = index / rate * 2 * math.pi * (220 + 55 * channel)
            value = 0.5 * math.sin(phase) + 0.25 * math.sin(2.5 * phase)
            frames += struct.pack("<h", int(20000 * value))
    block = 2 * channels
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(frames), b"WAVE", b"fmt ", 16, 1,
                       channels, rate, rate * block, block, 16, b"data", len(frames))
    return head + bytes(frames)


def noise(size, seed=1):
    return random.Random(int(seed)).randbytes(int(size))


def catalogue(count, changed):
    """A gettext catalogue; with `changed`, every third message differs by a word."""
    changed = changed == "changed"
    out = ['msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n']
    words = "open close file window region thread node page copy share".split()
    for number in range(int(count)):
        text = " ".join(words[number * step % 10] for step in range(1, 7)) + f" number {number}"
        if changed and number % 3 == 0:
            text = text.replace("number", "item")
        out.append(f'msgid "{text}"\nmsgstr "{"" if changed else text.upper()}"\n')
    return "\n".join(out).encode()


MAKERS = {maker.__name__: maker
          for maker in (picture, sequences, alignment, tone, noise, catalogue)}
