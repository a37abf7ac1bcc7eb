/* shell_lex.c - where words of a shell end. */
#include <string.h>

#include "import/run/shell_internal.h"

bool dl_shell_is_name(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

int dl_shell_line(struct dl_shell_reader *r) {
    if (r->counted == NULL || r->counted > r->at) {
        r->counted = r->text;
        r->counted_line = 1;
    }
    for (; r->counted < r->at; r->counted++) r->counted_line += *r->counted == '\n';
    return r->counted_line;
}

enum dl_code dl_shell_fail(struct dl_shell_reader *r, const char *message) {
    return dl_fail_at(r->err, r->path, dl_shell_line(r), 1, NULL, "%s", message);
}

/* Length of a backslash with the end of its line; 0: none is here. */
static int continued(const struct dl_shell_reader *r) {
    if (*r->at != '\\' || r->at + 1 >= r->end) return 0;
    if (r->at[1] == '\n') return 2;
    return r->at + 2 < r->end && r->at[1] == '\r' && r->at[2] == '\n' ? 3 : 0;
}

void dl_shell_skip(struct dl_shell_reader *r, bool newlines) {
    while (r->at < r->end) {
        const char c = *r->at;
        const int joined = continued(r);
        if (c == ' ' || c == '\t' || c == '\r') {
            r->at++;
        } else if (joined > 0) {
            r->at += joined;
        } else if (c == '#') {
            while (r->at < r->end && *r->at != '\n') r->at++;
        } else if (newlines && (c == '\n' || c == ';')) {
            r->at++;
            if (c == '\n' && r->jump != NULL) r->at = r->jump;
            if (c == '\n') r->jump = NULL;
        } else {
            return;
        }
    }
}

static enum dl_code skip_single(struct dl_shell_reader *r) {
    const char *close = memchr(r->at + 1, '\'', (size_t)(r->end - r->at - 1));
    if (close == NULL) return dl_shell_fail(r, "expected the closing '");
    r->at = close + 1;
    return DL_OK;
}

static enum dl_code skip_double(struct dl_shell_reader *r) {
    const char *open = r->at++;
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\' && r->at + 1 < r->end)
            r->at += 2;
        else if (*r->at == '$')
            DL_TRY(dl_shell_skip_dollar(r));
        else if (*r->at == '`')
            DL_TRY(dl_shell_skip_backquote(r));
        else
            r->at++;
    }
    if (r->at >= r->end) {
        r->at = open;
        return dl_shell_fail(r, "expected the closing \"");
    }
    r->at++;
    return DL_OK;
}

enum dl_code dl_shell_skip_backquote(struct dl_shell_reader *r) {
    const char *open = r->at++;
    while (r->at < r->end && *r->at != '`') r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
    if (r->at >= r->end) {
        r->at = open;
        return dl_shell_fail(r, "expected the closing `");
    }
    r->at++;
    return DL_OK;
}

/* One character of a bracket's inside, a quote or another bracket as a whole. */
static enum dl_code skip_inside(struct dl_shell_reader *r) {
    switch (*r->at) {
    case '\\': r->at += r->at + 1 < r->end ? 2 : 1; return DL_OK;
    case '\'': return skip_single(r);
    case '"': return skip_double(r);
    case '`': return dl_shell_skip_backquote(r);
    case '$': return dl_shell_skip_dollar(r);
    default: r->at++; return DL_OK;
    }
}

/* From an opening bracket past its closing one. */
static enum dl_code skip_brackets(struct dl_shell_reader *r, char open, char close) {
    const char *start = r->at++;
    int depth = 1;
    while (r->at < r->end && depth > 0) {
        const bool comment = open == '(' && *r->at == '#' &&
                             (r->at[-1] == ' ' || r->at[-1] == '\n' || r->at[-1] == '\t');
        if (comment) {
            while (r->at < r->end && *r->at != '\n') r->at++;
        } else if (*r->at == open || *r->at == close) {
            depth += *r->at == open ? 1 : -1;
            r->at++;
        } else {
            DL_TRY(skip_inside(r));
        }
    }
    if (depth == 0) return DL_OK;
    r->at = start;
    return dl_shell_fail(r, open == '(' ? "expected the closing )" : "expected the closing }");
}

enum dl_code dl_shell_skip_dollar(struct dl_shell_reader *r) {
    struct dl_shell *shell = r->shell;
    if (shell->depth > 60) return dl_shell_fail(r, "brackets too deep");
    shell->depth++;
    r->at++;
    enum dl_code code = DL_OK;
    if (r->at < r->end && *r->at == '(')
        code = skip_brackets(r, '(', ')');
    else if (r->at < r->end && *r->at == '{')
        code = skip_brackets(r, '{', '}');
    else if (r->at < r->end && *r->at == '\'' && r->at - r->text >= 2 && r->at[-2] != '"')
        code = skip_single(r);
    shell->depth--;
    return code;
}

enum dl_code dl_shell_skip_word(struct dl_shell_reader *r) {
    const char *from = r->at;
    while (r->at < r->end && strchr(" \t\r\n;&|<>()", *r->at) == NULL) {
        if (*r->at == '\\' && r->at + 1 < r->end && (r->at[1] == '\n' || r->at[1] == '\r')) break;
        DL_TRY(skip_inside(r));
        /* NAME=( ... ) is one word */
        const bool array =
            r->at < r->end && *r->at == '(' && r->at[-1] == '=' && dl_shell_is_name(*from, true);
        if (array) DL_TRY(skip_brackets(r, '(', ')'));
    }
    return DL_OK;
}

bool dl_shell_at_word(const struct dl_shell_reader *r, const char *const *words) {
    for (; *words != NULL; words++) {
        const size_t length = strlen(*words);
        if ((size_t)(r->end - r->at) < length || strncmp(r->at, *words, length) != 0) continue;
        const char next = r->at + length < r->end ? r->at[length] : '\n';
        if (strchr(" \t\r\n;&|<>()", next) != NULL || strcmp(*words, ";;") == 0) return true;
    }
    return false;
}
