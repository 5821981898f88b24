// roff writer: prints man(7) source to standard output.
#ifndef INFERSTAT_MAN_ROFF_H
#define INFERSTAT_MAN_ROFF_H

// Prints one line of text (printf format) with roff's special characters escaped: hyphens,
// backslashes, quotes, and a dot at the beginning.
__attribute__((format(printf, 1, 2))) void roff_text(const char *format, ...);

// Prints a macro call, ".MACRO "ARGUMENT"", with the argument (NULL: none) escaped.
void roff_macro(const char *macro, const char *argument);

// Begins a tagged paragraph (.TP): `tag` in bold, followed by `behind` in roman.
void roff_tag(const char *tag, const char *behind);

// Prints an example block (.EX) of lines, escaped and not filled.
void roff_example(const char *lines);

#endif
