/* cal_parts.c - see the header. */
#include "calibrate/profile/cal_internal.h"

#include <string.h>

bool dl_cal_is(const char *text, const char *other) {
    return text != NULL && strcmp(text, other) == 0;
}

double dl_cal_number(const struct dl_raw_sample *s, const char *key) {
    return dl_cal_shape_number(s->shape, key);
}

double dl_cal_number_or(const struct dl_raw_sample *s, const char *key, double fallback) {
    const double value = dl_cal_number(s, key);
    return dl_known(value) ? value : fallback;
}

int64_t dl_cal_nodes_of(const struct dl_raw_sample *s) {
    return (int64_t)dl_cal_number_or(s, "nodes", 1);
}

static enum dl_pass pass_of(const struct dl_raw_sample *s) {
    return dl_cal_is(s->pass, "bwd_data")     ? DL_BACKWARD_DATA
           : dl_cal_is(s->pass, "bwd_filter") ? DL_BACKWARD_WEIGHTS
                                              : DL_FORWARD;
}

struct dl_kernel dl_cal_convolution(const struct dl_raw_sample *s) {
    const double depth = dl_cal_number_or(s, "d", 1), h = dl_cal_number(s, "h"),
                 r = dl_cal_number(s, "r"), stride = dl_cal_number_or(s, "s", 1),
                 pad = dl_cal_number_or(s, "p", 0), dilation = dl_cal_number_or(s, "e", 1);
    const bool deep = depth > 1;
    const double in[DL_DIMS] = {depth, h, dl_cal_number_or(s, "w", h)},
                 kernel[DL_DIMS] = {deep ? dl_cal_number_or(s, "z", r) : 1, r,
                                    dl_cal_number_or(s, "q", r)},
                 strides[DL_DIMS] = {deep ? stride : 1, stride, stride},
                 pads[DL_DIMS] = {deep ? pad : 0, pad, dl_cal_number_or(s, "t", pad)},
                 dilations[DL_DIMS] = {deep ? dilation : 1, dilation, dilation};
    return dl_kernel_conv(
        pass_of(s),
        &(struct dl_conv_shape){dl_cal_number(s, "n"), dl_cal_number(s, "c"), dl_cal_number(s, "f"),
                                dl_cal_number_or(s, "g", 1), in, kernel, strides, pads, dilations});
}

void dl_cal_note(struct dl_cal_maker *m, const char *key, const char *text) {
    if (key == NULL || text == NULL || m->out->calibration.measurement_count == DL_CAL_NOTES_MAX)
        return;
    m->out->calibration.measurement[m->out->calibration.measurement_count++] =
        (struct dl_map_entry){key, text, NAN};
}

void dl_cal_note_fit(struct dl_cal_maker *m, const char *key,
                     const struct dl_fit_quality *quality) {
    dl_cal_note(
        m, key,
        dl_arena_printf(m->arena, "%zu samples, %s: median error %.1f %%, 90 %% below %.1f %%",
                        quality->samples, quality->folds > 0 ? "cross-validated" : "in-sample",
                        100 * quality->median_ape, 100 * quality->p90_ape));
}

/* Inserts in order of bytes; a size that is there already stays as it is. */
static void insert(struct dl_cal_messages *m, const struct dl_raw_sample *s, double bytes) {
    size_t at = 0;
    while (at < m->count && m->samples[at].bytes < bytes) at++;
    if (at < m->count && m->samples[at].bytes == bytes) return;
    memmove(m->samples + at + 1, m->samples + at, (m->count - at) * sizeof *m->samples);
    m->samples[at] = (struct dl_coll_sample){bytes, s->median_s, s->low_s, s->high_s};
    m->count++;
}

void dl_cal_messages(const struct dl_cal_maker *m, const char *probe, const char *pass,
                     int64_t ranks, int64_t nodes, struct dl_cal_messages *out) {
    out->count = 0;
    out->ranks = 0;
    out->samples = dl_arena_alloc(m->arena, m->journal->sample_count + 1, sizeof *out->samples);
    for (size_t i = 0; i < m->journal->sample_count && out->count < DL_LINK_SAMPLES_MAX; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        const double there = dl_cal_number(s, "ranks");
        if (!dl_cal_is(s->probe, probe) || (pass != NULL && !dl_cal_is(s->pass, pass)) ||
            !(there >= 2) || (ranks > 0 && there != (double)ranks) ||
            (nodes > 0 && dl_cal_nodes_of(s) != nodes))
            continue;
        insert(out, s, dl_cal_number(s, "bytes"));
        out->ranks = (int64_t)there;
    }
    for (size_t i = 0; i < out->count; i++)
        out->points[i] = (struct dl_link_sample){out->samples[i].bytes, out->samples[i].time_s};
}
