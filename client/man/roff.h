// Manual pages as text for man(7), written to standard output.
#ifndef INFERSTAT_MAN_ROFF_H
#define INFERSTAT_MAN_ROFF_H

// One line of text, formatted as by printf and escaped where roff would take it for
// its own: hyphens, backslashes, dots and quotes at its beginning.
__attribute__((format(printf, 1, 2))) void roff_text(const char *format, ...);

// ".MACRO" and its one argument, escaped and quoted; NULL: none.
void roff_macro(const char *macro, const char *argument);

// A tagged paragraph's tag, in bold, with what follows it in roman.
void roff_tag(const char *tag, const char *behind);

// Lines to be shown as they are, each escaped.
void roff_example(const char *lines);

#endif
