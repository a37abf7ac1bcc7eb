/* option.c - parses option tables. Abbreviations of long options are not taken: a later version
 * could make them ambiguous. */
#include "model/core/option.h"
#include "model/core/synonym.h"
#include "model/core/text.h"

#include <stdio.h>
#include <string.h>

static bool is_name(const char *name, const char *typed, size_t length) {
    return name != NULL && strlen(name) == length && strncmp(name, typed, length) == 0;
}

static const struct dl_option *find_long(const struct dl_option *const *tables, const char *name,
                                         size_t length) {
    for (int t = 0; tables[t] != NULL; t++) {
        for (const struct dl_option *o = tables[t]; o->name != NULL; o++) {
            const char *alias = o->value != NULL ? o->value->alias : NULL;
            if (is_name(o->name, name, length) || is_name(alias, name, length)) return o;
        }
    }
    return NULL;
}

static const struct dl_option *find_letter(const struct dl_option *const *tables, char letter) {
    for (int t = 0; tables[t] != NULL; t++) {
        for (const struct dl_option *o = tables[t]; o->name != NULL; o++) {
            if (o->letter == letter) return o;
        }
    }
    return NULL;
}

static enum dl_code unknown_option(const struct dl_option *const *tables, const char *word,
                                   size_t length, struct dl_err *err) {
    const char *names[128];
    int count = 0;
    for (int t = 0; tables[t] != NULL; t++) {
        for (const struct dl_option *o = tables[t]; o->name != NULL && count < 127; o++)
            names[count++] = o->name;
    }
    names[count] = NULL;
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s",
             length < sizeof typed ? (int)length : (int)sizeof typed - 1, word);
    const char *near = dl_suggest(typed, names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "unknown option --%s; did you mean --%s?", typed, near);
    return dl_fail(err, DL_ERR_USAGE, "unknown option --%s", typed);
}

static enum dl_code record(struct dl_options *out, const struct dl_option *option,
                           const char *value, struct dl_err *err) {
    if (!dl_option_repeatable(option) && dl_option_given(out, option->name)) {
        return dl_fail(err, DL_ERR_USAGE, "--%s: given twice", option->name);
    }
    if (out->given_count == DL_MAX_REPEATS)
        return dl_fail(err, DL_ERR_USAGE, "more than %d options", (int)DL_MAX_REPEATS);
    out->given[out->given_count].option = option;
    out->given[out->given_count++].value = value;
    return DL_OK;
}

static enum dl_code need_value(const struct dl_option *option, struct dl_err *err) {
    return dl_fail(err, DL_ERR_USAGE, "--%s: expected %s", option->name, option->argument);
}

static enum dl_code parse_long(struct dl_options *out, int argc, char **argv, int *i,
                               struct dl_err *err) {
    const char *word = argv[*i] + 2, *equals = strchr(word, '=');
    const size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const struct dl_option *option = find_long(out->tables, word, length);
    if (option == NULL) return unknown_option(out->tables, word, length, err);
    if (option->argument == NULL) {
        if (equals != NULL) return dl_fail(err, DL_ERR_USAGE, "--%s: takes no value", option->name);
        return record(out, option, "", err);
    }
    if (equals != NULL) return record(out, option, equals + 1, err);
    if (*i + 1 >= argc) return need_value(option, err);
    return record(out, option, argv[++*i], err);
}

static enum dl_code parse_short(struct dl_options *out, int argc, char **argv, int *i,
                                struct dl_err *err) {
    for (const char *c = argv[*i] + 1; *c != 0; c++) {
        const struct dl_option *option = find_letter(out->tables, *c);
        if (option == NULL) return dl_fail(err, DL_ERR_USAGE, "unknown option -%c", *c);
        if (option->argument == NULL) {
            DL_TRY(record(out, option, "", err));
            continue;
        }
        if (c[1] != 0) return record(out, option, c + 1, err);
        if (*i + 1 >= argc) return need_value(option, err);
        return record(out, option, argv[++*i], err);
    }
    return DL_OK;
}

enum dl_code dl_options_parse(const struct dl_option *const *tables, int argc, char **argv,
                              struct dl_options *out, struct dl_err *err) {
    memset(out, 0, sizeof *out);
    out->tables = tables;
    bool only_positional = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!only_positional && strcmp(word, "--") == 0) {
            only_positional = true;
        } else if (!only_positional && strncmp(word, "--", 2) == 0) {
            DL_TRY(parse_long(out, argc, argv, &i, err));
        } else if (!only_positional && word[0] == '-' && word[1] != 0) {
            DL_TRY(parse_short(out, argc, argv, &i, err));
        } else {
            if (out->positional_count == DL_MAX_POSITIONAL) {
                return dl_fail(err, DL_ERR_USAGE, "more than %d arguments", (int)DL_MAX_POSITIONAL);
            }
            out->positional[out->positional_count++] = word;
        }
    }
    return DL_OK;
}

const char *dl_option_text(const struct dl_options *options, const char *name) {
    for (int i = options->given_count - 1; i >= 0; i--) {
        if (strcmp(options->given[i].option->name, name) == 0) return options->given[i].value;
    }
    return NULL;
}

bool dl_option_given(const struct dl_options *options, const char *name) {
    return dl_option_text(options, name) != NULL;
}

const char *dl_option_first(const struct dl_options *options, const char *names) {
    size_t length;
    for (const char *word; (word = dl_word_next(&names, " ", &length)) != NULL;) {
        for (int i = 0; i < options->given_count; i++) {
            const char *name = options->given[i].option->name;
            if (is_name(name, word, length)) return name;
        }
    }
    return NULL;
}

struct dl_options dl_options_without(const struct dl_options *options, const char *name) {
    struct dl_options rest = *options;
    rest.given_count = 0;
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, name) != 0)
            rest.given[rest.given_count++] = options->given[i];
    }
    return rest;
}

bool dl_option_repeatable(const struct dl_option *option) {
    return option->value != NULL && option->value->repeatable;
}

static enum dl_code number_of(const char *name, const char *text, const struct dl_value *range,
                              double *out, struct dl_err *err) {
    const enum dl_unit unit = range->unit;
    const double min = range->min, max = range->max;
    double value;
    struct dl_err inner = {0};
    if (dl_units_parse(text, unit, &value, &inner) != DL_OK) {
        return dl_fail(err, DL_ERR_USAGE, "--%s: %s", name, inner.message);
    }
    if (!(value >= min && value <= max)) {
        return dl_fail(err, DL_ERR_USAGE, "--%s: expected a number in [%g, %g]%s%s, got \"%s\"",
                       name, min, max, dl_unit_name(unit)[0] != 0 ? " " : "", dl_unit_name(unit),
                       text);
    }
    *out = value;
    return DL_OK;
}

static enum dl_code integer_of(const char *name, const char *text, double min, double max,
                               int64_t *out, struct dl_err *err) {
    double value;
    const struct dl_value whole = {.unit = DL_UNIT_COUNT, .min = min, .max = max};
    DL_TRY(number_of(name, text, &whole, &value, err));
    *out = (int64_t)value;
    return DL_OK;
}

static enum dl_code choice_of(const char *name, const char *text, const char *const *choices,
                              int *out, struct dl_err *err) {
    char all[256] = "";
    const char *other = dl_value_synonym(text);
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], text) == 0 || strcmp(choices[i], other) == 0) {
            *out = i;
            return DL_OK;
        }
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    return dl_fail(err, DL_ERR_USAGE, "--%s: expected one of %s, got \"%s\"", name, all, text);
}

/* Bits of the words in `text`, which commas separate. */
static enum dl_code set_of(const char *name, const char *text, const char *const *choices,
                           unsigned *out, struct dl_err *err) {
    char word[64];
    *out = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        int choice;
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), at);
        DL_TRY(choice_of(name, word, choices, &choice, err));
        *out |= 1u << choice;
        at += length;
        if (*at == 0) return DL_OK;
    }
}

enum dl_code dl_option_number(const struct dl_options *options, const char *name,
                              const struct dl_value *range, double *out, struct dl_err *err) {
    const char *text = dl_option_text(options, name);
    return text == NULL ? DL_OK : number_of(name, text, range, out, err);
}

enum dl_code dl_option_integer(const struct dl_options *options, const char *name, int64_t min,
                               int64_t max, int64_t *out, struct dl_err *err) {
    const char *text = dl_option_text(options, name);
    return text == NULL ? DL_OK : integer_of(name, text, (double)min, (double)max, out, err);
}

enum dl_code dl_option_choice(const struct dl_options *options, const char *name,
                              const char *const *choices, int *out, struct dl_err *err) {
    const char *text = dl_option_text(options, name);
    return text == NULL ? DL_OK : choice_of(name, text, choices, out, err);
}

/* Copies bytes: the compiler has checked the field's type where the row was written. */
static void put(void *target, size_t at, const void *value, size_t size) {
    memcpy((char *)target + at, value, size);
}

static enum dl_code store_choice(const struct dl_option *option, const char *text, void *target,
                                 struct dl_err *err) {
    const struct dl_value *v = option->value;
    struct dl_err no_members;
    unsigned members = 0;
    int choice = v->members_choice;
    if (v->members == NULL ||
        set_of(option->name, text, v->members, &members, &no_members) != DL_OK)
        DL_TRY(choice_of(option->name, text, v->choices, &choice, err));
    put(target, v->at, &choice, sizeof choice);
    if (v->members != NULL) put(target, v->members_at, &members, sizeof members);
    return DL_OK;
}

static enum dl_code store(const struct dl_option *option, const char *text, void *target,
                          struct dl_err *err) {
    const struct dl_value *v = option->value;
    const bool yes = true;
    double number = 0;
    int64_t integer = 0;
    int choice = 0;
    unsigned set = 0;
    switch (v->kind) {
    case DL_VALUE_UNBOUND: return DL_OK;
    case DL_VALUE_FLAG: put(target, v->at, &yes, sizeof yes); return DL_OK;
    case DL_VALUE_WORD:
        DL_TRY(choice_of(option->name, text, v->choices, &choice, err));
        text = v->choices[choice];
        put(target, v->at, &text, sizeof text);
        return DL_OK;
    case DL_VALUE_TEXT: put(target, v->at, &text, sizeof text); return DL_OK;
    case DL_VALUE_CHOICE: return store_choice(option, text, target, err);
    case DL_VALUE_SET:
        DL_TRY(set_of(option->name, text, v->choices, &set, err));
        put(target, v->at, &set, sizeof set);
        return DL_OK;
    case DL_VALUE_NUMBER:
        DL_TRY(number_of(option->name, text, v, &number, err));
        put(target, v->at, &number, sizeof number);
        return DL_OK;
    case DL_VALUE_INTEGER:
        DL_TRY(integer_of(option->name, text, v->min, v->max, &integer, err));
        put(target, v->at, &integer, sizeof integer);
        return DL_OK;
    }
    return DL_OK;
}

enum dl_code dl_option_store(const struct dl_option *option, const char *text, void *target,
                             struct dl_err *err) {
    const struct dl_value *v = option->value;
    const bool yes = true;
    if (v == NULL) return DL_OK;
    if (v->given_at > 0) put(target, v->given_at, &yes, sizeof yes);
    if (v->word != NULL && strcmp(text, v->word) == 0) {
        put(target, v->word_at, &yes, sizeof yes);
        return DL_OK;
    }
    return store(option, text, target, err);
}

enum dl_code dl_option_store_cell(const struct dl_option *option, const char *text, void *target,
                                  struct dl_err *err) {
    const struct dl_value *v = option->value;
    if (v == NULL || v->kind != DL_VALUE_FLAG) return dl_option_store(option, text, target, err);
    const bool given = true, on = strcmp(text, "1") == 0;
    if (!on && strcmp(text, "0") != 0)
        return dl_fail(err, DL_ERR_USAGE, "--%s: expected 1 or 0, got \"%.60s\"", option->name,
                       text);
    if (v->given_at > 0) put(target, v->given_at, &given, sizeof given);
    put(target, v->at, &on, sizeof on);
    return DL_OK;
}

enum dl_code dl_options_bind(const struct dl_options *options, const struct dl_option *table,
                             void *target, struct dl_err *err) {
    for (const struct dl_option *o = table; o->name != NULL; o++) {
        for (int i = 0; i < options->given_count; i++) {
            if (options->given[i].option != o) continue;
            DL_TRY(dl_option_store(o, options->given[i].value, target, err));
        }
    }
    return DL_OK;
}
