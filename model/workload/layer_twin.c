/* layer_twin.c - layers of equal shapes: networks repeat a few blocks, and the kernels of each need
 * to be timed once. Not here: what a framework fuses, which depends on the layers around it.
 */
#include <string.h>

#include "model/workload/workload.h"

/* All that kernels are made from lies between these members. Padding is zero as allocated, and
 * where it is not, two layers count as different. */
static bool same_shapes(const struct dl_layer *a, const struct dl_layer *b) {
    const size_t from = offsetof(struct dl_layer, in), to = offsetof(struct dl_layer, parameters);
    return memcmp((const char *)a + from, (const char *)b + from, to - from) == 0;
}

/* Kernels of recorded layers; padding is zero as loaded. */
static bool same_recorded(const struct dl_recorded_work *a, const struct dl_recorded_work *b) {
    if (a == NULL || b == NULL) return a == b;
    return a->kernel_count == b->kernel_count &&
           memcmp(a->kernels, b->kernels, (size_t)a->kernel_count * sizeof *a->kernels) == 0;
}

/* Full recomputation repeats layers of numbered blocks alone. */
static bool same_work(const struct dl_layer *a, const struct dl_layer *b) {
    return a->kind == b->kind && a->parameter_elements == b->parameter_elements &&
           a->input_count == b->input_count && a->parameter_count == b->parameter_count &&
           a->buffer_elements == b->buffer_elements && a->forward_macs == b->forward_macs &&
           a->saved.elements == b->saved.elements && a->saved.bytes == b->saved.bytes &&
           a->saved.own_elements == b->saved.own_elements && a->saved.keeps == b->saved.keeps &&
           a->consumers == b->consumers && a->tied_to == b->tied_to && a->detached == b->detached &&
           a->first == b->first && a->frozen == b->frozen && a->adapter_rank == b->adapter_rank &&
           a->frozen_elements == b->frozen_elements &&
           (a->block.prefix == 0) == (b->block.prefix == 0) && same_shapes(a, b) &&
           same_recorded(a->work, b->work);
}

int dl_layer_twin(const struct dl_layer *layers, int index) {
    const int twin = index - layers[index].twin_before;
    return twin >= 0 && twin < index && same_work(&layers[twin], &layers[index]) ? twin : index;
}

void dl_layer_find_twins(struct dl_layer *layers, int count) {
    /* The first layers of their kinds, of which networks have few; further ones have no twins. */
    enum { MOST = 64 };
    int firsts[MOST], known = 0;
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < known && !same_work(&layers[firsts[k]], &layers[i])) k++;
        layers[i].twin_before = k < known ? i - firsts[k] : 0;
        if (k == known && known < MOST) firsts[known++] = i;
    }
}
