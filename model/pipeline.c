/* pipeline.c - schedules and balance of pipelines. See pipeline.h. */
#include "model/pipeline.h"

#include <math.h>

#include "model/layer.h"

double dl_pipeline_bubble_steps(enum dl_schedule schedule, double stages, double virtual_stages) {
    if (schedule == DL_ASYNC) return 0;
    return (stages - 1) / (schedule == DL_INTERLEAVED ? fmax(1, virtual_stages) : 1);
}

double dl_pipeline_in_flight(enum dl_schedule schedule, double stage, double stages, double micro_batches, double virtual_stages) {
    double count = stages - stage;
    if (schedule == DL_GPIPE) count = micro_batches;
    if (schedule == DL_INTERLEAVED) count = stages * (1 + (stages - 1) / (stages * fmax(1, virtual_stages)));
    return fmin(count, micro_batches);
}

double dl_pipeline_weight_versions(enum dl_schedule schedule, double stage, double stages) {
    return schedule == DL_ASYNC ? stages - stage : 1;
}

/* best[s][i]: least largest sum for layers [0, i) in s stages; cut[s][i]: where the last of them begins. */
double dl_pipeline_balance(const double *cost, int layers, int stages, int *first, double *work) {
    if (stages < 1 || layers < stages) return NAN;
    const int width = layers + 1;
    double *best = work, *cut = work + (stages + 1) * width;
    best[width] = 0;
    for (int i = 1; i <= layers; i++) {
        best[width + i] = best[width + i - 1] + cost[i - 1];
        cut[width + i] = 0;
    }
    for (int s = 2; s <= stages; s++) {
        for (int i = s; i <= layers; i++) {
            double last = 0, least = HUGE_VAL;
            int at = i - 1;
            for (int j = i - 1; j >= s - 1; j--) { /* the last stage: layers [j, i) */
                last += cost[j];
                if (last > least) break;
                const double largest = fmax(last, best[(s - 1) * width + j]);
                if (largest < least) {
                    least = largest;
                    at = j;
                }
            }
            best[s * width + i] = least;
            cut[s * width + i] = at;
        }
    }
    first[stages] = layers;
    for (int s = stages; s >= 1; s--) first[s - 1] = (int)cut[s * width + first[s]];
    return best[stages * width + layers];
}

double dl_pipeline_cut_elements(const struct dl_workload *workload, int cut) {
    double elements = 0;
    for (int i = 0; i < cut; i++) {
        bool needed = false;
        for (int j = cut; j < workload->layer_count && !needed; j++) {
            for (int k = 0; k < workload->layers[j].input_count; k++) needed = needed || workload->layers[j].inputs[k] == i;
        }
        if (needed) elements += dl_shape_elements(&workload->layers[i].out);
    }
    return elements;
}
