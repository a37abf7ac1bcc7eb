/* pipeline.c - schedules and balance of pipelines. See pipeline.h. */
#include "model/engine/pipeline.h"

#include <math.h>

#include "model/workload/layer.h"

/* work: for layers [0, i) in s stages at i * width + s the least largest sum, then where the last
 * stage begins; then room for the sums of layers [j, i). */
struct balances {
    int width;
    double *best, *cut, *last;
};
static struct balances balances_in(double *work, int layers, int stages) {
    const size_t width = (size_t)stages + 1, each = width * ((size_t)layers + 1);
    return (struct balances){(int)width, work, work + each, work + 2 * each};
}

/* Where the last of s stages over layers [0, i) begins. With a beginning at j the stages before
 * take `before`, which rises with j, the last one takes `last`, which falls. From *cross on the
 * former is the larger: the least of the larger ones is there or just before it. Of equals the last
 * one. */
static int last_begins(const struct balances *b, int s, int i, int *cross) {
    const double *before = b->best + s - 1, *last = b->last;
    const int width = b->width;
    int j = *cross > s - 1 ? *cross : s - 1;
    while (j < i - 1 && before[j * width] < last[j]) j++;
    *cross = j;
    const double largest = last[j] > before[j * width] ? last[j] : before[j * width];
    if (j > s - 1 && last[j - 1] < largest) return j - 1;
    if (j == i - 1 || before[(j + 1) * width] > largest) return j;
    if (before[(i - 1) * width] <= largest) return i - 1;
    do j++;
    while (before[(j + 1) * width] <= largest);
    return j;
}

/* With more stages the last one begins no earlier: one walk over the layers finds the cuts for all
 * numbers of stages. Where one layer alone sets the pace, more stages change nothing, and the last
 * one is as short as can be. */
void dl_pipeline_balances(const double *cost, int layers, int stages, double *work) {
    const struct balances b = balances_in(work, layers, stages);
    double *last = b.last, longest = 0;
    b.best[1] = 0;
    for (int i = 1; i <= layers; i++) {
        double *best = b.best + i * b.width, *cut = b.cut + i * b.width;
        longest = cost[i - 1] > longest ? cost[i - 1] : longest;
        last[i] = 0;
        for (int j = i - 1; j >= 0; j--) last[j] = last[j + 1] + cost[j];
        best[1] = best[1 - b.width] + cost[i - 1];
        cut[1] = 0;
        int cross = 1, s = 2;
        for (; s <= stages && s <= i && best[s - 1 - b.width] > longest; s++) {
            const int at = last_begins(&b, s, i, &cross);
            const double before = b.best[at * b.width + s - 1];
            best[s] = last[at] > before ? last[at] : before;
            cut[s] = at;
        }
        for (; s <= stages && s <= i; s++) best[s] = longest, cut[s] = i - 1;
    }
}

void dl_pipeline_cut(const double *work, int layers, int most, int stages, int *first) {
    const int width = most + 1;
    const double *cut = work + (layers + 1) * width;
    first[stages] = layers;
    for (int s = stages; s >= 1; s--) first[s - 1] = (int)cut[first[s] * width + s];
}

double dl_pipeline_balance(const double *cost, int layers, int stages, int *first, double *work) {
    if (stages < 1 || layers < stages) return NAN;
    dl_pipeline_balances(cost, layers, stages, work);
    dl_pipeline_cut(work, layers, stages, stages, first);
    return work[layers * (stages + 1) + stages];
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
