/* wrap.c - paragraphs broken into lines. */
#include "predict/manual/wrap.h"

#include <string.h>

void dl_text_wrap(struct dl_text *t, const char *text, int indent, int width) {
    int column = indent;
    bool first = true;
    while (*text != 0) {
        const int word = (int)strcspn(text, " \n");
        if (!first && column + 1 + word > width) {
            dl_text_printf(t, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        dl_text_printf(t, "%s%.*s", first ? "" : " ", word, text);
        column += word + (first ? 0 : 1);
        first = text[word] == '\n';
        if (first) {
            dl_text_printf(t, "\n%*s", text[word + 1] == '\n' ? 0 : indent, "");
            column = indent;
        }
        text += word + (text[word] != 0 ? 1 : 0);
    }
    dl_text_add(t, "\n");
}
