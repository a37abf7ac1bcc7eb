/* recorded.h - for tests: results of the program against those that were recorded from it before.
 *
 * A regression net, no oracle: what is recorded came from the program itself, so a difference says
 * that a result moved, not which of the two is right. After a change that is meant and reviewed,
 * `make golden-accept` records the present results.
 *
 * A file (tests/golden/recorded/NAME.txt) has one line a case: its number, its first results in
 * digits, compared within 1e-9, then a code of four characters for each further field. The code of
 * a number is the fraction of its logarithm in 2^-24, so a relative change above 3e-7 shows, and a
 * last bit that another math library rounds otherwise does not. The code of a text is a hash.
 * Draw random numbers one after another: compilers evaluate arguments in different orders.
 * DL_RECORD=1 writes the file; DL_RECORD_SHOW=N (or =all) prints all fields of case N, to compare
 * with those of another version. DL_RECORD_FIRST=1 ends the program at the first difference: enough
 * to know that there is one (tests/mutation).
 */
#ifndef TESTS_RECORDED_H
#define TESTS_RECORDED_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/status.h"
#include "tests/check.h"

enum {
    RECORDED_FIELDS = 240,
    RECORDED_DIGITS = 4, /* results printed in digits, at most */
    RECORDED_SHOWN = 20, /* differences printed, at most */
    RECORDED_STEPS = 1 << 24,
    RECORDED_SLACK = 4, /* steps between numbers that count as equal */
    RECORDED_LINE = 2048,
    RECORDED_TEXT = 160 /* bytes of a text that are shown */
};

struct recorded_field {
    const char *name;
    double value;
    bool is_text;
    char text[RECORDED_TEXT];
    char code[5];
};

static struct {
    FILE *file;
    bool writes, ends_at_first;
    int differences;
    const char *path_name;
    long number;
    char title[600];
    struct recorded_field fields[RECORDED_FIELDS];
    int field_count;
    double digits[RECORDED_DIGITS];
    const char *digit_names[RECORDED_DIGITS];
    int digit_count;
} recorded;

static const char recorded_alphabet[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-";

static inline void recorded_encode(uint32_t steps, char code[5]) {
    for (int i = 0; i < 4; i++) code[i] = recorded_alphabet[steps >> (18 - 6 * i) & 63];
    code[4] = '\0';
}
/* -1: no code of a number. */
static inline long recorded_decode(const char *code) {
    long steps = 0;
    for (int i = 0; i < 4; i++) {
        const char *place = code[i] == '\0' ? NULL : strchr(recorded_alphabet, code[i]);
        if (place == NULL) return -1;
        steps = steps * 64 + (place - recorded_alphabet);
    }
    return steps;
}

static inline void recorded_open(const char *name) {
    char path[4096];
    const char *write = getenv("DL_RECORD");
    memset(&recorded, 0, sizeof recorded);
    snprintf(path, sizeof path, "%s/tests/golden/recorded/%s.txt", check_root(), name);
    recorded.path_name = name;
    recorded.writes = write != NULL && write[0] == '1';
    recorded.ends_at_first = getenv("DL_RECORD_FIRST") != NULL;
    recorded.file = fopen(path, recorded.writes ? "w" : "r");
    if (recorded.file == NULL) fail_msg("%s cannot be opened: make golden-accept", path);
}

static inline void recorded_case(const char *title) {
    recorded.number++;
    recorded.field_count = recorded.digit_count = 0;
    snprintf(recorded.title, sizeof recorded.title, "%s", title);
}

/* One of the first results of a case. */
static inline void recorded_result(const char *name, double value) {
    if (recorded.digit_count == RECORDED_DIGITS) fail_msg("too many results of %s", name);
    recorded.digit_names[recorded.digit_count] = name;
    recorded.digits[recorded.digit_count++] = value;
}

static inline void recorded_number(const char *name, double value) {
    if (recorded.field_count == RECORDED_FIELDS) fail_msg("too many fields at %s", name);
    struct recorded_field *field = &recorded.fields[recorded.field_count++];
    *field = (struct recorded_field){.name = name, .value = value};
    if (isnan(value))
        strcpy(field->code, "!nan");
    else if (isinf(value))
        strcpy(field->code, value > 0 ? "!inf" : "!-oo");
    else if (fabs(value) < 1e-15) /* what rounding leaves of a difference of equals */
        strcpy(field->code, "!0!!");
    else {
        const double part = log(fabs(value)) + (value < 0 ? 0.5 : 0);
        recorded_encode((uint32_t)((part - floor(part)) * RECORDED_STEPS) % RECORDED_STEPS,
                        field->code);
    }
}

/* Several numbers as one field: the sum of their logarithms, with weights by their places. */
struct recorded_sum {
    double sum;
    int count;
};
static inline void recorded_add(struct recorded_sum *to, double value) {
    const double weight = 1 + 0.01 * (double)(to->count++ % 89);
    if (isnan(value))
        to->sum += 11.7 * weight;
    else if (fabs(value) < 1e-15)
        to->sum += 3.1 * weight;
    else
        to->sum += weight * ((value < 0 ? 0.7 : 0) + (isinf(value) ? 777 : log(fabs(value))));
}
static inline void recorded_sum_of(const char *name, const struct recorded_sum *sum) {
    recorded_number(name, exp(fmod(sum->sum, 64)));
}

/* FNV-1a over texts; NULL is none, which differs from "". */
static inline uint32_t recorded_hash(uint32_t hash, const char *text) {
    if (hash == 0) hash = 2166136261u;
    for (const char *c = text != NULL ? text : "\1"; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return (hash ^ 0xffu) * 16777619u;
}
/* `shown`: what a difference prints of it. */
static inline void recorded_text_hash(const char *name, uint32_t hash, const char *shown) {
    if (recorded.field_count == RECORDED_FIELDS) fail_msg("too many fields at %s", name);
    struct recorded_field *field = &recorded.fields[recorded.field_count++];
    *field = (struct recorded_field){.name = name, .is_text = true};
    snprintf(field->text, sizeof field->text, "%.*s", RECORDED_TEXT - 1,
             shown != NULL ? shown : "(none)");
    recorded_encode((hash ^ hash >> 24) & 0xffffff, field->code);
    field->code[0] = recorded_alphabet[(hash >> 18) & 63];
}
static inline void recorded_text(const char *name, const char *text) {
    recorded_text_hash(name, recorded_hash(0, text), text);
}

/* "FILE:LINE:COL: error: KEY: what was expected" */
static inline void recorded_error(const char *name, const struct dl_err *err) {
    char text[2048];
    dl_err_text(err, "dlmodel", text, sizeof text);
    recorded_text(name, text);
}

static inline bool recorded_same(const struct recorded_field *field, const char *code) {
    if (strncmp(field->code, code, 4) == 0) return true;
    const long was = recorded_decode(code), is = recorded_decode(field->code);
    if (field->is_text || was < 0 || is < 0) return false;
    const long apart = labs(was - is);
    return apart <= RECORDED_SLACK || apart >= RECORDED_STEPS - RECORDED_SLACK;
}

static inline void recorded_differs(const char *name, const char *what, const char *was) {
    if (recorded.differences++ < RECORDED_SHOWN)
        print_error("%s case %ld (%s): %s is %s, recorded %s\n", recorded.path_name,
                    recorded.number, recorded.title, name, what, was);
    if (recorded.ends_at_first) exit(1);
}

static inline void recorded_write(void) {
    fprintf(recorded.file, "%ld", recorded.number);
    for (int i = 0; i < recorded.digit_count; i++)
        fprintf(recorded.file, " %.10g", recorded.digits[i]);
    fputc(' ', recorded.file);
    for (int i = 0; i < recorded.field_count; i++) fputs(recorded.fields[i].code, recorded.file);
    fputc('\n', recorded.file);
}

static inline void recorded_show(void) {
    const char *wanted = getenv("DL_RECORD_SHOW");
    if (wanted == NULL ||
        (strcmp(wanted, "all") != 0 && strtol(wanted, NULL, 10) != recorded.number))
        return;
    printf("case %ld (%s)\n", recorded.number, recorded.title);
    for (int i = 0; i < recorded.digit_count; i++)
        printf("  %s %.12g\n", recorded.digit_names[i], recorded.digits[i]);
    for (int i = 0; i < recorded.field_count; i++) {
        const struct recorded_field *f = &recorded.fields[i];
        if (f->is_text)
            printf("  %s %s (%s)\n", f->name, f->text, f->code);
        else
            printf("  %s %.12g\n", f->name, f->value);
    }
}

static inline void recorded_compare_fields(const char *codes) {
    const int count = (int)(strlen(codes) / 4);
    char is[512];
    for (int i = 0; i < recorded.field_count && i < count; i++) {
        const struct recorded_field *field = &recorded.fields[i];
        if (recorded_same(field, codes + 4 * i)) continue;
        if (field->is_text)
            snprintf(is, sizeof is, "\"%s\"", field->text);
        else
            snprintf(is, sizeof is, "%.12g", field->value);
        recorded_differs(field->name, is, "otherwise");
    }
    if (count != recorded.field_count) {
        snprintf(is, sizeof is, "%d", recorded.field_count);
        char was[32];
        snprintf(was, sizeof was, "%d", count);
        recorded_differs("number of fields", is, was);
    }
}

/* Compares the case with its line, or writes it. */
static inline void recorded_end_case(void) {
    char line[RECORDED_LINE], is[64], *at, *end;
    recorded_show();
    if (recorded.writes) {
        recorded_write();
        return;
    }
    if (fgets(line, sizeof line, recorded.file) == NULL) {
        recorded_differs("the case", "new", "nowhere: make golden-accept");
        return;
    }
    line[strcspn(line, "\n")] = '\0';
    if (strtol(line, &at, 10) != recorded.number) fail_msg("a broken line: %s", line);
    for (int i = 0; i < recorded.digit_count; i++) {
        const double was = strtod(at, &end), value = recorded.digits[i];
        if (end == at) break;
        const bool same =
            (isnan(was) && isnan(value)) || was == value || fabs(value - was) <= 1e-9 * fabs(was);
        snprintf(is, sizeof is, "%.10g", value);
        char text[64];
        snprintf(text, sizeof text, "%.10g", was);
        if (!same) recorded_differs(recorded.digit_names[i], is, text);
        at = end;
    }
    recorded_compare_fields(at + strspn(at, " "));
}

static inline void recorded_close(void) {
    char line[RECORDED_LINE];
    if (!recorded.writes && fgets(line, sizeof line, recorded.file) != NULL)
        recorded_differs("the number of cases", "smaller", "larger");
    fclose(recorded.file);
    if (recorded.differences > 0)
        fail_msg("%d fields differ from tests/golden/recorded/%s.txt", recorded.differences,
                 recorded.path_name);
}

#endif
