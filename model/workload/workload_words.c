/* workload_words.c - parameters whose values are words ("mlp": "swiglu"): in expressions a word
 * stands for a number of its own, so that only comparisons of words mean anything.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/workload/workload_build.h"

double dl_build_word(const struct dl_build *b, const char *name) {
    double number = 0.0;
    for (int doc = 0; doc < b->doc_count; doc++) {
        const struct dl_workload_file *file = &b->files[doc];
        for (int i = 0; i < file->choice_count; i++) {
            for (int j = 0; j < file->choices[i].word_count; j++) {
                number += 1.0;
                if (strcmp(file->choices[i].words[j], name) == 0) return number;
            }
        }
    }
    return NAN;
}

static const struct dl_choice *choice_of(const struct dl_build *b, const char *parameter) {
    for (int doc = 0; doc < b->doc_count; doc++) {
        for (int i = 0; i < b->files[doc].choice_count; i++) {
            if (strcmp(b->files[doc].choices[i].parameter, parameter) == 0)
                return &b->files[doc].choices[i];
        }
    }
    return NULL;
}

const char *dl_build_letters(const struct dl_build *b, const struct dl_build_value *value) {
    const struct dl_choice *choice = choice_of(b, value->key);
    const char *text = value->text;
    if (choice == NULL || choice->letters == NULL) return NULL;
    return text[0] != '\0' && text[strspn(text, choice->letters)] == '\0' ? text : NULL;
}

enum dl_code dl_build_letter(struct dl_build *b, const char *name, double index, double *out,
                             struct dl_err *err) {
    const struct dl_build_value *value = b->values, *end = b->values + b->value_count;
    while (value < end && strcmp(value->key, name) != 0) value++;
    if (value == end) return dl_fail(err, DL_ERR_INPUT, "no parameter '%.60s' here", name);
    const char *letters = dl_build_letters(b, value);
    const double count = letters != NULL ? (double)strlen(letters) : 1.0;
    const size_t at = (size_t)(index - floor(index / count) * count);
    *out = letters != NULL ? (unsigned char)letters[at] : 0.0;
    return DL_OK;
}

const char *dl_build_word_of(const struct dl_build *b, const struct dl_build_value *value) {
    const struct dl_choice *choice = choice_of(b, value->key);
    const char *letters = dl_build_letters(b, value);
    if (letters != NULL) return letters;
    for (int i = 0; choice != NULL && i < choice->word_count; i++) {
        if (dl_build_word(b, choice->words[i]) == value->value) return choice->words[i];
    }
    return NULL;
}

static enum dl_code not_a_word(struct dl_build *b, const struct dl_choice *choice,
                               const char *found) {
    char list[160] = "";
    size_t used = 0;
    const char *words[32];
    int count = choice->word_count < 31 ? choice->word_count : 31;
    for (int i = 0; i < count; i++) {
        words[i] = choice->words[i];
        const int length = snprintf(list + used, sizeof list - used, "%s%.24s",
                                    i == 0           ? ""
                                    : i + 1 == count ? " or "
                                                     : ", ",
                                    words[i]);
        if (length > 0 && used + (size_t)length < sizeof list) used += (size_t)length;
    }
    words[count] = NULL;
    const char *near = dl_suggest(found, words);
    return dl_fail(b->err, DL_ERR_INPUT, "%.40s: expected %s, found \"%.40s\"%s%s%s",
                   choice->parameter, list, found, near ? "; did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
}

static bool is_name(const char *text) {
    if (!isalpha((unsigned char)text[0])) return false;
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && *text != '_') return false;
    return true;
}

enum dl_code dl_build_check_text(struct dl_build *b, const struct dl_build_value *value) {
    const struct dl_choice *choice = choice_of(b, value->key);
    if (choice == NULL || choice->letters != NULL) return DL_OK;
    char *end;
    strtod(value->text, &end);
    if (*end == '\0') return not_a_word(b, choice, value->text); /* numbers of words are private */
    if (!is_name(value->text) || dl_build_has_value(b, value->text)) return DL_OK;
    for (int i = 0; i < choice->word_count; i++)
        if (strcmp(choice->words[i], value->text) == 0) return DL_OK;
    return not_a_word(b, choice, value->text);
}

enum dl_code dl_build_check_word(struct dl_build *b, const struct dl_build_value *value) {
    const struct dl_choice *choice = choice_of(b, value->key);
    if (choice == NULL || choice->letters != NULL || dl_build_word_of(b, value) != NULL)
        return DL_OK;
    return not_a_word(b, choice, value->text);
}

/* Before any expression reads the text. 0: none. */
static enum dl_code check_letters(struct dl_build *b, const struct dl_build_value *value) {
    const struct dl_choice *choice = choice_of(b, value->key);
    if (choice == NULL || choice->letters == NULL || strcmp(value->text, "0") == 0 ||
        dl_build_letters(b, value) != NULL)
        return DL_OK;
    const char *unknown = value->text + strspn(value->text, choice->letters);
    char list[80] = "";
    for (const char *l = choice->letters; *l != 0 && strlen(list) + 8 < sizeof list; l++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%c",
                 l == choice->letters ? ""
                 : l[1] == 0          ? " and "
                                      : ", ",
                 *l);
    return dl_fail(b->err, DL_ERR_INPUT, "no letter '%.1s' in \"%.60s\"; the letters are %s",
                   unknown, value->text, list);
}

enum dl_code dl_build_check_choices(struct dl_build *b) {
    for (int i = 0; i < b->value_count; i++) DL_TRY(check_letters(b, &b->values[i]));
    for (int doc = 0; doc < b->doc_count; doc++) {
        for (int i = 0; i < b->files[doc].choice_count; i++) {
            const struct dl_choice *choice = &b->files[doc].choices[i];
            char path[64];
            if (!dl_build_has_value(b, choice->parameter)) {
                snprintf(path, sizeof path, "choices[%d].parameter", i);
                return dl_json_fail(b->docs[doc], path, b->err, "no parameter '%.60s'",
                                    choice->parameter);
            }
            for (int j = 0; j < choice->word_count; j++) {
                snprintf(path, sizeof path, "choices[%d].words[%d]", i, j);
                if (!is_name(choice->words[j]))
                    return dl_json_fail(b->docs[doc], path, b->err,
                                        "expected a word of letters, digits and '_', which begins "
                                        "with a letter, found \"%.40s\"",
                                        choice->words[j]);
                if (dl_build_has_value(b, choice->words[j]))
                    return dl_json_fail(b->docs[doc], path, b->err,
                                        "'%.60s' is the name of a parameter", choice->words[j]);
            }
        }
    }
    return DL_OK;
}
