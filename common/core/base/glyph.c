#include "common/core/base/glyph.h"

#include <string.h>

#include "common/core/base/text.h"

struct range {
    uint32_t first, last;
};

// East Asian Width W and F (Unicode 15), neighbouring ranges joined.
static const struct range wide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x23F0, 0x23F0},   {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267F, 0x267F},   {0x2693, 0x2693},   {0x26A1, 0x26A1},
    {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},   {0x26CE, 0x26CE},
    {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},
    {0x2728, 0x2728},   {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27B0, 0x27B0},   {0x27BF, 0x27BF},
    {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},   {0x2E80, 0x303E},
    {0x3041, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF}, {0x1AFF0, 0x1B2FF}, {0x1F004, 0x1F004},
    {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7F0}, {0x1F90C, 0x1FAFF}, {0x20000, 0x3FFFD},
};

// Combining marks, joiners, direction controls and other invisible characters.
static const struct range invisible[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F},   {0x00AD, 0x00AD}, {0x0300, 0x036F}, {0x0483, 0x0489},
    {0x0591, 0x05BD}, {0x0610, 0x061C},   {0x064B, 0x065F}, {0x0670, 0x0670}, {0x06D6, 0x06DC},
    {0x180B, 0x180F}, {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x2028, 0x202E},
    {0x2060, 0x206F}, {0x20D0, 0x20FF},   {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF},
    {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF},
};

// What the dashboard draws with, and how it looks in ASCII.
static const struct {
    uint32_t code;
    char ascii;
} stand_ins[] = {
    {0x00B1, '~'},                                              // ±
    {0x00B7, '-'}, {0x2013, '-'}, {0x2026, '~'},                // · – …
    {0x2190, '<'}, {0x2191, '^'}, {0x2192, '>'}, {0x2193, 'v'}, // ← ↑ → ↓
    {0x2500, '-'}, {0x2502, '|'}, {0x250C, '+'}, {0x2510, '+'}, // ─ │ ┌ ┐
    {0x2514, '+'}, {0x2518, '+'}, {0x2550, '='},                // └ ┘ ═
    {0x2581, '.'}, {0x2582, ':'}, {0x2583, '-'}, {0x2584, '='}, // ▁ ▂ ▃ ▄
    {0x2585, '+'}, {0x2586, '*'}, {0x2587, '%'}, {0x2588, '#'}, // ▅ ▆ ▇ █
    {0x2589, '#'}, {0x258A, '#'}, {0x258B, '#'}, {0x258C, '#'}, // ▉ ▊ ▋ ▌
    {0x258D, '|'}, {0x258E, '|'}, {0x258F, '|'}, {0x2590, '#'}, // ▍ ▎ ▏ ▐
    {0x2534, '+'}, {0x2592, ':'}, {0x25B6, '>'},                // ┴ ▒ ▶
    {0x2591, '.'}, {0x25B2, '^'}, {0x25BC, 'v'}, {0x25CB, 'o'}, // ░ ▲ ▼ ○
    {0x25CF, '*'}, {0x2717, 'x'}, {0x2016, '='}, {0x25B8, '+'}, // ● ✗ ‖ ▸
    {0x25BE, '-'},                                              // ▾
};

static int range_holds(const struct range *ranges, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code < ranges[middle].first)
            high = middle;
        else if (code > ranges[middle].last)
            low = middle + 1;
        else
            return 1;
    }
    return 0;
}

uint32_t glyph_next(const char **text)
{
    uint32_t code = '?';
    const size_t size = text_character(*text, strnlen(*text, 4), &code);
    if (**text == '\0')
        return 0;
    *text += size > 0 ? size : 1;
    return code;
}

int glyph_width(uint32_t code)
{
    if (code >= 0x20 && code < 0x7F)
        return 1;
    if (range_holds(invisible, sizeof invisible / sizeof *invisible, code))
        return 0;
    return range_holds(wide, sizeof wide / sizeof *wide, code) ? 2 : 1;
}

int glyph_text_width(const char *text)
{
    int width = 0;
    for (uint32_t code; (code = glyph_next(&text)) != 0;)
        width += glyph_width(code);
    return width;
}

size_t glyph_cut(const char *text, int columns)
{
    const char *end = text, *next = text;
    for (uint32_t code; (code = glyph_next(&next)) != 0; end = next) {
        columns -= glyph_width(code);
        if (columns < 0)
            break;
    }
    return (size_t)(end - text);
}

uint32_t glyph_ascii(uint32_t code)
{
    if (code >= 0x20 && code < 0x7F)
        return code;
    for (size_t i = 0; i < sizeof stand_ins / sizeof *stand_ins; i++)
        if (stand_ins[i].code == code)
            return (unsigned char)stand_ins[i].ascii;
    return '?';
}
