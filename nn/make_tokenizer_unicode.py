"""Prints nn/tokenizer_unicode.inc: for each code point whether it is a letter (\\p{L}), a number
(\\p{N}), white space (\\s) or none of these, as runs of equal ones from U+0000 on.

    pip install unicodedata2 && python3 nn/make_tokenizer_unicode.py > nn/tokenizer_unicode.inc

Without unicodedata2 it takes Python's own tables, which may be of an older Unicode.
"""
try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

# The property White_Space: the separators, and those controls that move the cursor.
CONTROLS = "\t\n\v\f\r\x85"


def kind(code):
    character = chr(code)
    category = unicodedata.category(character)
    if category[0] == "L":
        return 1
    if category[0] == "N":
        return 2
    return 3 if category[0] == "Z" or character in CONTROLS else 0


runs = []
for code in range(0x110000):
    if runs and runs[-1][0] == kind(code):
        runs[-1][1] += 1
    else:
        runs.append([kind(code), 1])

print(f"// Unicode {unicodedata.unidata_version}, by make_tokenizer_unicode.py: for each run of code points 4 * length + kind.")
line = ""
for run in runs:
    word = f"{4 * run[1] + run[0]},"
    if len(line) + len(word) > 100:
        print(line)
        line = ""
    line += word
print(line)
