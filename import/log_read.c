/* log_read.c - the lines of a log by the patterns of its format, and what they sum up to. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/log.h"

enum { LINE_BYTES = 8192 };

static bool is_digit(char c) { return isdigit((unsigned char)c) != 0; }

/* A comma between three digits and others: 7,000 is one number, 7,2 two. */
static bool parts_thousands(const char *comma) {
    return *comma == ',' && is_digit(comma[1]) && is_digit(comma[2]) && is_digit(comma[3]) &&
           !is_digit(comma[4]);
}

/* K, M, B or G right behind a number and alone. */
static double suffix_scale(const char *text) {
    if (*text == '\0' || isalpha((unsigned char)text[1])) return 1;
    return *text == 'K' ? 1e3 : *text == 'M' ? 1e6 : *text == 'B' || *text == 'G' ? 1e9 : 1;
}

double dl_log_number(const char *text) {
    char plain[64], *end;
    size_t size = 0;
    text += strspn(text, " \t");
    if (!is_digit(*text) && *text != '.') return NAN;
    for (; *text != '\0' && size + 1 < sizeof plain; text++) {
        if (parts_thousands(text)) continue;
        if (!is_digit(*text) && strchr(".eE+-", *text) == NULL) break;
        plain[size++] = *text;
    }
    plain[size] = '\0';
    const double value = strtod(plain, &end);
    if (end == plain || !isfinite(value)) return NAN;
    return *end == '\0' ? value * suffix_scale(text) : value;
}

void dl_log_add(struct dl_log *log, enum dl_log_slot slot, double value) {
    struct dl_log_values *v = &log->measured[slot];
    const double step = log->numbers[DL_LOG_STEP];
    if (!(value > 0 && value < 1e15)) return;
    if (v->count > 0 && dl_known(step) && step == v->index) return; /* another rank's */
    v->list = dl_arena_grow(log->arena, v->list, (size_t)v->count, sizeof *v->list);
    v->list[v->count++] = value;
    v->index = step;
}

void dl_log_fact(struct dl_log *log, enum dl_log_slot slot, double value) {
    if ((value > 0 || slot == DL_LOG_STEP) && value < 1e15) log->numbers[slot] = value;
}

/* The number that ends where `end` begins; NAN: none. */
static double number_before(const char *line, const char *end) {
    const char *from = end;
    while (from > line && from[-1] == ' ') from--;
    const char *stop = from;
    while (from > line && (isdigit((unsigned char)from[-1]) || from[-1] == '.')) from--;
    return from < stop ? dl_log_number(from) : NAN;
}

static void take_word(struct dl_log *log, enum dl_log_slot slot, const char *text) {
    while (*text == ' ' || *text == '\t') text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) length--;
    if (length > 0 && length < 80) log->words[slot] = dl_arena_strndup(log->arena, text, length);
}

static void take(struct dl_log *log, const struct dl_log_pattern *p, const char *line) {
    const char *at = strstr(line, p->before != NULL ? p->before : p->after);
    if (at == NULL || (p->only != NULL && strstr(line, p->only) == NULL)) return;
    if (p->slot >= DL_LOG_NUMBERS) {
        take_word(log, p->slot, at + strlen(p->before));
        return;
    }
    double value = NAN;
    for (; at != NULL && !dl_known(value);
         at = strstr(at + 1, p->before != NULL ? p->before : p->after))
        value = p->before != NULL ? dl_log_number(at + strlen(p->before)) : number_before(line, at);
    if (!dl_known(value)) return;
    if (p->scale > 0) value *= p->scale;
    if (p->slot < DL_LOG_MEASURED)
        dl_log_add(log, p->slot, value);
    else
        dl_log_fact(log, p->slot, value);
}

/* A line without the codes that colour it; what is too long is cut. */
static size_t plain_line(const char *from, const char *to, char *line) {
    size_t size = 0;
    for (; from < to && size + 1 < LINE_BYTES; from++) {
        if (*from == '\033' && from + 1 < to && from[1] == '[') {
            for (from += 2; from < to && !isalpha((unsigned char)*from);) from++;
            continue;
        }
        line[size++] = *from == '\0' ? ' ' : *from;
    }
    line[size] = '\0';
    return size;
}

static bool holds(const char *text, size_t length, const char *word) {
    const size_t size = strlen(word);
    for (const char *at = text, *end = text + length;
         size <= (size_t)(end - at) && (at = memchr(at, word[0], (size_t)(end - at))) != NULL; at++)
        if (size <= (size_t)(end - at) && memcmp(at, word, size) == 0) return true;
    return false;
}

static void read_as(const struct dl_log_format *format, const char *text, size_t length,
                    struct dl_log *log) {
    char line[LINE_BYTES];
    const char *end = text + length;
    struct dl_arena *arena = log->arena;
    *log = (struct dl_log){.arena = arena,
                           .format = format,
                           .since_s = NAN,
                           .epoch_samples = NAN,
                           .eval_s = NAN,
                           .column = -1};
    for (int i = 0; i < DL_LOG_NUMBERS; i++) log->numbers[i] = NAN;
    while (text < end) { /* bars of progress end their lines by \r or go back by \b */
        const char *stop = text;
        while (stop < end && *stop != '\n' && *stop != '\r' && *stop != '\b') stop++;
        if (plain_line(text, stop, line) > 0) {
            for (const struct dl_log_pattern *p = format->patterns;
                 p->before != NULL || p->after != NULL; p++)
                take(log, p, line);
            if (format->line != NULL) format->line(log, line);
        }
        text = stop + 1;
    }
}

static bool has_marks(const struct dl_log_format *f, const char *text, size_t length) {
    for (int i = 0; i < 3 && f->marks[i] != NULL; i++)
        if (!holds(text, length, f->marks[i])) return false;
    return true;
}

static bool has_measurement(const struct dl_log *log) {
    for (int i = 0; i < DL_LOG_MEASURED; i++)
        if (log->measured[i].count > 0) return true;
    return dl_known(log->numbers[DL_LOG_TOTAL]);
}

void dl_log_read(const char *text, size_t length, struct dl_arena *arena, struct dl_log *out) {
    out->arena = arena;
    for (const struct dl_log_format *f = dl_log_formats; f->name != NULL; f++) {
        if (!has_marks(f, text, length)) continue;
        read_as(f, text, length, out);
        if (has_measurement(out)) return;
    }
    out->format = NULL;
}

bool dl_log_known(const char *text, size_t length, struct dl_arena *arena) {
    struct dl_log *log = dl_arena_alloc(arena, 1, sizeof *log);
    dl_log_read(text, length, arena, log);
    return log->format != NULL;
}

/* ---- sums ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int count, double part) {
    const double at = part * (count - 1);
    const int below = (int)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

static double median_of(const double *list, int count, double *scratch) {
    memcpy(scratch, list, (size_t)count * sizeof *scratch);
    qsort(scratch, (size_t)count, sizeof *scratch, ascending);
    return quantile(scratch, count, 0.5);
}

static int warmup_of(const double *list, int count, bool rate, double *scratch) {
    const int half = count / 2;
    if (count < 3) return 0;
    const double usual = median_of(list + half, count - half, scratch);
    int first = 1;
    while (first < half && (rate ? list[first] * 1.2 < usual : list[first] > usual * 1.2)) first++;
    return first;
}

/* Of a device's power: the samples in which it works, above half of the largest. */
static int busy(double *list, int count) {
    double most = 0;
    int kept = 0;
    for (int i = 0; i < count; i++) most = fmax(most, list[i]);
    for (int i = 0; i < count; i++)
        if (list[i] > most / 2) list[kept++] = list[i];
    return kept;
}

bool dl_log_summarize(const struct dl_log *log, struct dl_log_summary *out) {
    *out = (struct dl_log_summary){.slot = DL_LOG_SAMPLES_PER_S};
    const struct dl_log_pattern *p = log->format->patterns;
    const double total = log->numbers[DL_LOG_TOTAL];
    while ((p->before != NULL || p->after != NULL) &&
           (p->slot >= DL_LOG_MEASURED || log->measured[p->slot].count == 0))
        p++;
    if (p->before != NULL || p->after != NULL) {
        out->slot = p->slot;
    } else { /* formats that read their lines */
        for (int i = 0; i < DL_LOG_MEASURED; i++)
            if (log->measured[i].count > 0) out->slot = (enum dl_log_slot)i;
    }
    const struct dl_log_values *v = &log->measured[out->slot];
    if (dl_known(total)) {
        *out = (struct dl_log_summary){DL_LOG_SAMPLES_PER_S, total, NAN, NAN, v->count, 0};
        return true;
    }
    if (v->count == 0) return false;
    double *scratch = dl_arena_alloc(log->arena, (size_t)v->count, sizeof *scratch);
    const bool power = out->slot == DL_LOG_POWER_W;
    out->warmup = power ? 0 : warmup_of(v->list, v->count, out->slot != DL_LOG_STEP_S, scratch);
    out->steps = v->count - out->warmup;
    memcpy(scratch, v->list + out->warmup, (size_t)out->steps * sizeof *scratch);
    if (power) out->steps = busy(scratch, out->steps);
    qsort(scratch, (size_t)out->steps, sizeof *scratch, ascending);
    out->value = quantile(scratch, out->steps, 0.5);
    out->low = quantile(scratch, out->steps, 0.1);
    out->high = quantile(scratch, out->steps, 0.9);
    return true;
}
