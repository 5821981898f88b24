// Real numbers for machines to read.
#ifndef INFERSTAT_CLIENT_CLI_NUMBER_H
#define INFERSTAT_CLIENT_CLI_NUMBER_H

enum { NUMBER_TEXT_SIZE = 32 };

// Writes a finite number with the fewest digits that read back as the same
// double.  `text` holds NUMBER_TEXT_SIZE bytes.  Returns it.
char *number_text(char *text, double value);

#endif
