// roff writer: prints the source text of a manual page (man(7) macros) to standard output.
#ifndef INFERSTAT_MAN_ROFF_H
#define INFERSTAT_MAN_ROFF_H

// Prints one line of text (printf format) and escapes roff's special characters in it: hyphens,
// backslashes, quotes, and a dot at the beginning.
__attribute__((format(printf, 1, 2))) void roff_text(const char *format, ...);

// Prints a macro call, ".MACRO "ARGUMENT"", with the argument (NULL: none) escaped.
void roff_macro(const char *macro, const char *argument);

// Begins a tagged paragraph (.TP): `tag` in bold, followed by `behind` in roman.
void roff_tag(const char *tag, const char *behind);

// Prints `lines` as an example block (.EX): escaped, with their line breaks kept.
void roff_example(const char *lines);

#endif
