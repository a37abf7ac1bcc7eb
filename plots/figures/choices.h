/* choices.h - choices of nodes, stages or parts as `search --heterogeneous --csv` writes them. */
#ifndef DL_PLOTS_FIGURES_CHOICES_H
#define DL_PLOTS_FIGURES_CHOICES_H

#include "model/core/csv.h"

struct dl_choice {
    const char *label; /* "iris-v100:2 + das5-titanx:1; balanced" */
    const char *kinds; /* "iris-v100 + das5-titanx" */
    double samples_per_s, low_samples_per_s, high_samples_per_s;
    double sample_energy_j, cost_per_sample; /* NAN: not known */
    const char *stages; /* of a pipeline: "iris-v100:2 conv1..flatten; ..."; NULL: none */
};

/* Whether a table holds choices, by its columns. */
bool dl_choices_table(const struct dl_csv *csv);

/* Those that fit in memory, in the order of the table, which is that of the search's objective.
 * DL_ERR_INPUT: another table, or no choice that fits. */
enum dl_code dl_choices_read(const struct dl_csv *csv, struct dl_arena *arena,
                             struct dl_choice **out, int *count, struct dl_err *err);

#endif
