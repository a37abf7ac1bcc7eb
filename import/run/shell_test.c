/* shell_test.c - conditions: "[ ... ]", "test" and "[[ ... ]]". */
#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/shell_internal.h"

/* Tokens of a condition; literal: quoted, so that it is no pattern. */
struct tokens {
    struct dl_shell *shell;
    const char *const *texts;
    const bool *literal; /* NULL: all */
    int count, at, depth;
    bool patterns;
};

static enum dl_shell_truth truth(bool value) { return value ? DL_SHELL_TRUE : DL_SHELL_FALSE; }
static enum dl_shell_truth opposite(enum dl_shell_truth a) {
    return a == DL_SHELL_OPEN_QUESTION ? a : truth(a == DL_SHELL_FALSE);
}
static enum dl_shell_truth both(enum dl_shell_truth a, enum dl_shell_truth b) {
    if (a == DL_SHELL_FALSE || b == DL_SHELL_FALSE) return DL_SHELL_FALSE;
    return a == DL_SHELL_TRUE && b == DL_SHELL_TRUE ? DL_SHELL_TRUE : DL_SHELL_OPEN_QUESTION;
}
static enum dl_shell_truth either(enum dl_shell_truth a, enum dl_shell_truth b) {
    return opposite(both(opposite(a), opposite(b)));
}

static bool matches(const char *pattern, const char *text) {
    regex_t compiled;
    if (strlen(pattern) > 512 || regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    const bool found = regexec(&compiled, text, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

static bool is_number(const char *text) {
    return text[0] != '\0' && text[strspn(text, "+-0123456789 ")] == '\0';
}

static enum dl_shell_truth compare_numbers(const struct tokens *t, const char *a,
                                           const char *operator, const char * b) {
    const char *left = t->patterns ? dl_shell_arithmetic(t->shell, a, false) : a,
               *right = t->patterns ? dl_shell_arithmetic(t->shell, b, false) : b;
    if (!is_number(left) || !is_number(right)) return DL_SHELL_OPEN_QUESTION;
    const double x = strtod(left, NULL), y = strtod(right, NULL);
    switch (operator[1] * 256 + operator[2]) {
    case 'e' * 256 + 'q': return truth(x == y);
    case 'n' * 256 + 'e': return truth(x != y);
    case 'l' * 256 + 't': return truth(x < y);
    case 'l' * 256 + 'e': return truth(x <= y);
    case 'g' * 256 + 't': return truth(x > y);
    default: return truth(x >= y);
    }
}

static enum dl_shell_truth binary(const struct tokens *t, int at) {
    bool open = false;
    struct dl_arena *arena = t->shell->arena;
    const char *operator= t->texts[at + 1], *a = dl_shell_plain(arena, t->texts[at], &open),
               *b = dl_shell_plain(arena, t->texts[at + 2], &open);
    if (open) return DL_SHELL_OPEN_QUESTION;
    if (operator[0] == '-') return compare_numbers(t, a, operator, b);
    if (strcmp(operator, "=~") == 0) return truth(matches(b, a));
    if (strcmp(operator, "<") == 0) return truth(strcmp(a, b) < 0);
    if (strcmp(operator, ">") == 0) return truth(strcmp(a, b) > 0);
    const bool equal =
        t->patterns && !t->literal[at + 2] ? fnmatch(b, a, 0) == 0 : strcmp(a, b) == 0;
    return truth(equal == (operator[0] == '='));
}

static enum dl_shell_truth unary(const struct tokens *t, const char *operator, const char * word) {
    bool open = false;
    const char *plain = dl_shell_plain(t->shell->arena, word, &open);
    if (operator[1] == 'v') return truth(dl_shell_get(t->shell, word) != NULL);
    if (open || (operator[1] != 'z' && operator[1] != 'n')) return DL_SHELL_OPEN_QUESTION;
    return truth((plain[0] == '\0') == (operator[1] == 'z'));
}

static enum dl_shell_truth alternatives(struct tokens *t);

static enum dl_shell_truth primary(struct tokens *t) {
    const char *word = t->at < t->count ? t->texts[t->at] : "";
    if (t->at >= t->count || t->depth > 40) return DL_SHELL_FALSE;
    const bool three = t->at + 2 < t->count &&
                       dl_has_word("= == != =~ < > -eq -ne -lt -le -gt -ge", t->texts[t->at + 1]);
    if (three) {
        t->at += 3;
        return binary(t, t->at - 3);
    }
    if (strcmp(word, "!") == 0) {
        t->at++;
        t->depth++;
        return opposite(primary(t));
    }
    if (strcmp(word, "(") == 0) {
        t->at++;
        t->depth++;
        const enum dl_shell_truth inner = alternatives(t);
        t->at += t->at < t->count && strcmp(t->texts[t->at], ")") == 0;
        return inner;
    }
    const bool two = t->at + 1 < t->count && word[0] == '-' && strlen(word) == 2 &&
                     strchr("zndfesrwxhLpSbcgkuOGNtv", word[1]) != NULL;
    if (two) {
        t->at += 2;
        return unary(t, word, t->texts[t->at - 1]);
    }
    t->at++;
    return unary(t, "-n", word);
}

static enum dl_shell_truth all_of(struct tokens *t) {
    enum dl_shell_truth value = primary(t);
    while (t->at < t->count && dl_has_word("&& -a", t->texts[t->at])) {
        t->at++;
        value = both(value, primary(t));
    }
    return value;
}

static enum dl_shell_truth alternatives(struct tokens *t) {
    enum dl_shell_truth value = all_of(t);
    while (t->at < t->count && dl_has_word("|| -o", t->texts[t->at])) {
        t->at++;
        value = either(value, all_of(t));
    }
    return value;
}

enum dl_shell_truth dl_shell_test(struct dl_shell *shell, const char *const *words, int count) {
    struct tokens t = {.shell = shell, .texts = words, .count = count};
    return alternatives(&t);
}

/* One token of [[ ]]: an operator, or a word expanded without splitting. */
static enum dl_code next_token(struct dl_shell_reader *r, bool live, struct dl_shell_list *list,
                               bool *literal) {
    static const char *const operators[] = {"&&", "||", "(", ")", "<", ">"};
    struct dl_arena *arena = r->shell->arena;
    const char *from = r->at, *text = "";
    *literal = *from == '"' || *from == '\'';
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        const size_t length = strlen(operators[i]);
        if (strncmp(from, operators[i], length) != 0) continue;
        r->at += length;
        dl_shell_push(arena, list, operators[i]);
        return DL_OK;
    }
    const bool pattern = list->count > 0 && strcmp(list->texts[list->count - 1], "=~") == 0;
    if (pattern) /* a regular expression may hold brackets */
        while (r->at < r->end && strchr(" \t\n", *r->at) == NULL) r->at++;
    else
        DL_TRY(dl_shell_skip_word(r));
    if (r->at == from) r->at++;
    if (live) DL_TRY(dl_shell_expand_text(r, from, r->at, false, &text));
    dl_shell_push(arena, list, live ? text : "x");
    return DL_OK;
}

enum dl_code dl_shell_double_test(struct dl_shell_reader *r, bool live, enum dl_shell_truth *out) {
    static const char *const close[] = {"]]", NULL};
    enum { MOST = 128 };
    struct dl_shell_list list = {NULL, 0};
    bool literal[MOST + 2] = {false};
    for (;;) {
        dl_shell_skip(r, false);
        while (r->at < r->end && *r->at == '\n') {
            r->at++;
            dl_shell_skip(r, false);
        }
        if (r->at >= r->end || list.count == MOST) return dl_shell_fail(r, "expected ]]");
        if (dl_shell_at_word(r, close)) break;
        DL_TRY(next_token(r, live, &list, &literal[list.count]));
    }
    r->at += 2;
    struct tokens t = {.shell = r->shell,
                       .texts = list.texts,
                       .literal = literal,
                       .count = list.count,
                       .patterns = true};
    *out = live ? alternatives(&t) : DL_SHELL_FALSE;
    return DL_OK;
}
