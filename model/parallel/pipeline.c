/* pipeline.c - schedules and balance of pipelines. See pipeline.h. */
#include "model/parallel/pipeline.h"

#include <math.h>

#include "model/workload/layer.h"

double dl_pipeline_in_flight(enum dl_schedule schedule, double stage, double stages,
                             double micro_batches, double virtual_stages) {
    double count = stages - stage;
    if (schedule == DL_GPIPE) count = micro_batches;
    if (schedule == DL_INTERLEAVED)
        count = stages * (1 + (stages - 1) / (stages * fmax(1, virtual_stages)));
    return fmin(count, micro_batches);
}

double dl_pipeline_weight_versions(enum dl_schedule schedule, double stage, double stages) {
    return schedule == DL_ASYNC ? stages - stage : 1;
}

/* Where the last of s stages over layers [0, i) begins: before, in s - 1 stages, layers [0, j) take
 * `before[j]`, which rises with j, and the last stage takes `last[j]`, which falls. From the layer
 * *cross on, the former is the larger: the least of the larger ones is there or just before it. Of
 * equals the last layer. */
static int last_begins(const double *before, const double *last, int s, int i, int *cross) {
    int j = *cross > s - 1 ? *cross : s - 1;
    while (j < i - 1 && before[j] < last[j]) j++;
    *cross = j;
    const double largest = fmax(last[j], before[j]);
    if (j > s - 1 && last[j - 1] < largest) return j - 1;
    if (j == i - 1 || before[j + 1] > largest) return j;
    if (before[i - 1] <= largest) return i - 1;
    int above = i - 1; /* before[j] is as large as at the crossing, before[above] is larger */
    while (above - j > 1) {
        const int middle = (j + above) / 2;
        *(before[middle] > largest ? &above : &j) = middle;
    }
    return j;
}

/* best[s][i]: least largest sum for layers [0, i) in s stages; cut[s][i]: where the last of them
 * begins. With more stages the last one begins no earlier: one walk over the layers finds the cuts
 * for all numbers of stages. */
void dl_pipeline_balances(const double *cost, int layers, int stages, double *work) {
    const int width = layers + 1;
    double *best = work, *cut = work + (stages + 1) * width;
    double *last = best; /* of layers [j, i), in place of no stages at all */
    best[width] = 0;
    for (int i = 1; i <= layers; i++) {
        last[i] = 0;
        for (int j = i - 1; j >= 0; j--) last[j] = last[j + 1] + cost[j];
        best[width + i] = best[width + i - 1] + cost[i - 1];
        cut[width + i] = 0;
        int cross = 1;
        for (int s = 2; s <= stages && s <= i; s++) {
            const double *before = best + (s - 1) * width;
            const int at = last_begins(before, last, s, i, &cross);
            best[s * width + i] = fmax(last[at], before[at]);
            cut[s * width + i] = at;
        }
    }
}

void dl_pipeline_cut(const double *work, int layers, int most, int stages, int *first) {
    const int width = layers + 1;
    const double *cut = work + (most + 1) * width;
    first[stages] = layers;
    for (int s = stages; s >= 1; s--) first[s - 1] = (int)cut[s * width + first[s]];
}

double dl_pipeline_balance(const double *cost, int layers, int stages, int *first, double *work) {
    if (stages < 1 || layers < stages) return NAN;
    dl_pipeline_balances(cost, layers, stages, work);
    dl_pipeline_cut(work, layers, stages, stages, first);
    return work[stages * (layers + 1) + layers];
}

void dl_pipeline_cuts(const struct dl_workload *workload, double *elements) {
    const int layers = workload->layer_count;
    for (int cut = 0; cut <= layers; cut++) elements[cut] = 0;
    for (int i = 0; i < layers; i++) {
        int last = i; /* that reads it */
        for (int j = layers - 1; j > i && last == i; j--) {
            for (int k = 0; k < workload->layers[j].input_count; k++)
                last = workload->layers[j].inputs[k] == i ? j : last;
        }
        for (int cut = i + 1; cut <= last; cut++)
            elements[cut] += dl_shape_elements(&workload->layers[i].out);
    }
}
