/* figure.c - see the header. */
#include "model/core/figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Separates thousands of a number of five digits or more before the point. */
static void separate(char text[DL_FIGURE_TEXT]) {
    enum { LEAST = 5 };
    char *first = text + (text[0] == '-');
    const size_t whole = strspn(first, "0123456789");
    if (whole < LEAST) return;
    for (size_t left = 3; left < whole; left += 3) {
        char *at = first + whole - left;
        memmove(at + 1, at, strlen(at) + 1);
        *at = ',';
    }
}

void dl_figure(double value, int digits, char out[DL_FIGURE_TEXT]) {
    char rounded[64];
    const double size = fabs(value);

    if (!isfinite(value) || value == 0) {
        snprintf(out, DL_FIGURE_TEXT, "%s",
                 isnan(value) ? "-"
                 : value == 0 ? "0"
                 : value < 0  ? "-inf"
                              : "inf");
        return;
    }
    if (digits > 17) digits = 17;
    if (size >= 1e15 || size < 1e-6) {
        snprintf(out, DL_FIGURE_TEXT, "%.*g", digits, value);
        return;
    }
    /* 9.996 is 10.0 with three digits */
    snprintf(rounded, sizeof rounded, "%.*e", digits - 1, value);
    const long exponent = strtol(strchr(rounded, 'e') + 1, NULL, 10);
    snprintf(out, DL_FIGURE_TEXT, "%.*f", digits - 1 > exponent ? digits - 1 - (int)exponent : 0,
             value);
    separate(out);
}

void dl_figure_whole(int64_t value, char out[DL_FIGURE_TEXT]) {
    snprintf(out, DL_FIGURE_TEXT, "%" PRId64, value);
    separate(out);
}

const char *dl_figure_text(struct dl_arena *arena, double value, int digits) {
    char text[DL_FIGURE_TEXT];
    dl_figure(value, digits, text);
    return dl_arena_strdup(arena, text);
}

const char *dl_whole_text(struct dl_arena *arena, double value) {
    char text[DL_FIGURE_TEXT];
    snprintf(text, sizeof text, "%.0f", value);
    separate(text);
    return dl_arena_strdup(arena, text);
}

struct unit {
    double from_s, unit_s;
    const char *name;
};

static const struct unit *unit_of(double time_s) {
    static const struct unit units[] = {{172800, 86400, "days"},
                                        {3600, 3600, "hours"},
                                        {120, 60, "minutes"},
                                        {1, 1, "s"},
                                        {1e-3, 1e-3, "ms"}};
    const struct unit *last = units + sizeof units / sizeof units[0] - 1, *u = units;
    while (u < last && time_s < u->from_s) u++;
    return u;
}

const char *dl_duration_text(struct dl_arena *arena, double time_s) {
    const struct unit *u = unit_of(time_s);
    return dl_arena_printf(arena, "%s %s", dl_figure_text(arena, time_s / u->unit_s, 3), u->name);
}

const char *dl_duration_range(struct dl_arena *arena, double low_s, double high_s) {
    const struct unit *u = unit_of(low_s);
    if (u != unit_of(high_s))
        return dl_arena_printf(arena, "%s to %s", dl_duration_text(arena, low_s),
                               dl_duration_text(arena, high_s));
    return dl_arena_printf(arena, "%s to %s", dl_figure_text(arena, low_s / u->unit_s, 3),
                           dl_duration_text(arena, high_s));
}

const char *dl_count_text(struct dl_arena *arena, double value) {
    static const struct {
        double size;
        char letter;
    } sizes[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (value >= sizes[i].size)
            return dl_arena_printf(arena, "%.4g%c", value / sizes[i].size, sizes[i].letter);
    }
    return value == floor(value) ? dl_whole_text(arena, value) : dl_figure_text(arena, value, 4);
}
