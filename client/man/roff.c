#include "client/man/roff.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 4096 };

static void put_escaped(const char *text, size_t size)
{
    if (size > 0 && (text[0] == '.' || text[0] == '\''))
        printf("\\&");
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\')
            printf("\\e");
        else if (text[i] == '-')
            printf("\\-");
        else if (text[i] == '"')
            printf("\\(dq");
        else if (text[i] == '\'')
            printf("\\(aq");
        else
            putchar(text[i]);
    }
}

void roff_text(const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    put_escaped(line, size < 0 ? 0 : strlen(line));
    putchar('\n');
}

void roff_macro(const char *macro, const char *argument)
{
    printf(".%s", macro);
    if (argument) {
        printf(" \"");
        put_escaped(argument, strlen(argument));
        putchar('"');
    }
    putchar('\n');
}

void roff_tag(const char *tag, const char *behind)
{
    printf(".TP\n.BR \"");
    put_escaped(tag, strlen(tag));
    printf("\" \"");
    put_escaped(behind, strlen(behind));
    printf("\"\n");
}

void roff_example(const char *lines)
{
    printf(".PP\n.RS 4\n.EX\n");
    while (*lines) {
        const size_t size = strcspn(lines, "\n");
        put_escaped(lines, size);
        putchar('\n');
        lines += size + (lines[size] == '\n');
    }
    printf(".EE\n.RE\n");
}
