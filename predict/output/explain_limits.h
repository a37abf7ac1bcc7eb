/* explain_limits.h - the limits of the layers of one prediction, and their effect on the speedup
 * of a faster precision. */
#ifndef DL_PREDICT_OUTPUT_EXPLAIN_LIMITS_H
#define DL_PREDICT_OUTPUT_EXPLAIN_LIMITS_H

#include "model/core/json.h"
#include "predict/inputs/inputs.h"
#include "predict/output/rows.h"

enum dl_explain_limit {
    DL_EXPLAIN_ARITHMETIC,
    DL_EXPLAIN_MEMORY,
    DL_EXPLAIN_LATENCY,
    DL_EXPLAIN_LIMITS
};

struct dl_explain_limits {
    /* number of layers that take time on the device; 0: the prediction has no terms by layer */
    int layers;
    /* by the limit of most of their time, forward and backward */
    int count[DL_EXPLAIN_LIMITS];
    double time_s[DL_EXPLAIN_LIMITS]; /* of those layers */
    const char *arithmetic;           /* "arithmetic", or "tensor cores", "matrix units" */
    /* not fp32 and compared with it; NULL: nothing to compare */
    const char *precision;
    /* time of an iteration in fp32 / here; peak rates here / fp32 */
    double gain_ratio, peak_ratio;
    double part_ratio[DL_EXPLAIN_LIMITS]; /* the same for the layers of each limit; NAN: none */
};

/* From the row's terms; also predicts the same plan in fp32 when the precision is another and
 * the device has both. */
void dl_explain_limits(const struct dl_inputs *inputs, const struct dl_prediction_row *row,
                       struct dl_arena *arena, struct dl_explain_limits *out);
/* One to three lines, or "". */
const char *dl_explain_limits_text(struct dl_arena *arena, const struct dl_explain_limits *limits);
/* The member "limits" of the open object; null without information. */
void dl_explain_limits_json(struct dl_json_writer *writer, const struct dl_explain_limits *limits);

#endif
