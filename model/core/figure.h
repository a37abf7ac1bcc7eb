/* figure.h - numbers as people read them: without exponents, thousands separated from 10,000 on. */
#ifndef DL_MODEL_CORE_FIGURE_H
#define DL_MODEL_CORE_FIGURE_H

#include <stdint.h>

#include "model/core/arena.h"

enum { DL_FIGURE_TEXT = 400 }; /* bytes for any of them */

/* `digits` significant digits: 12,346; 12.3; 0.00123. Beyond 1e15 and below 1e-6 with an exponent.
 * NAN: "-". */
void dl_figure(double value, int digits, char out[DL_FIGURE_TEXT]);
void dl_figure_whole(int64_t value, char out[DL_FIGURE_TEXT]);

/* The same in the arena. */
const char *dl_figure_text(struct dl_arena *arena, double value, int digits);
const char *dl_whole_text(struct dl_arena *arena, double value); /* rounded to a whole number */
/* A time in the unit that fits it: "12.3 ms", "4.2 s", "2.2 minutes", "6.2 hours", "54.1 days". */
const char *dl_duration_text(struct dl_arena *arena, double time_s);
/* Two of them, the unit once where it is the same: "101 to 178 ms". */
const char *dl_duration_range(struct dl_arena *arena, double low_s, double high_s);
/* A large round count: "300B" tokens, "2T"; others as dl_figure does. */
const char *dl_count_text(struct dl_arena *arena, double value);

#endif
